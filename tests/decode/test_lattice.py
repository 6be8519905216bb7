"""Best paths of small random lattices against enumeration of all their paths."""

from dataclasses import dataclass

import kaldifst
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asrtrain.decode.lattice import lattice_from_openfst


@dataclass(frozen=True)
class Arc:
    """An arc as the test made it."""

    begin: int
    end: int
    word: int
    graph: float
    acoustic: float


costs = st.floats(0, 8, width=16)


@st.composite
def lattices(draw) -> tuple[int, list[Arc], dict[int, tuple[float, float]]]:
    """States in a random numbering, arcs from lower to higher rank, some final states."""
    states = draw(st.integers(2, 6))
    names = draw(st.permutations(range(states)))
    arcs = [
        Arc(names[low], names[high], draw(st.integers(0, 3)), draw(costs), draw(costs))
        for low in range(states)
        for high in range(low + 1, states)
        for _ in range(draw(st.integers(0, 2)))
    ]
    finals = {
        names[state]: (draw(costs), draw(costs))
        for state in range(states)
        if state == states - 1 or draw(st.booleans())
    }
    return names[0], arcs, finals


def as_openfst(path, start: int, arcs: list[Arc], finals: dict) -> bytes:
    fst = kaldifst.Lattice()
    for _ in range(1 + max([start, *finals, *(max(arc.begin, arc.end) for arc in arcs)])):
        fst.add_state()
    fst.start = start
    for state, (graph, acoustic) in finals.items():
        fst.set_final(state, kaldifst.LatticeWeight(graph, acoustic))
    for arc in arcs:
        weight = kaldifst.LatticeWeight(arc.graph, arc.acoustic)
        fst.add_arc(arc.begin, kaldifst.LatticeArc(1, arc.word, weight, arc.end))
    fst.write(str(path))
    return path.read_bytes()


def all_paths(start: int, arcs: list[Arc], finals: dict) -> list[tuple[list[Arc], tuple]]:
    found, waiting = [], [(start, [])]
    while waiting:
        state, path = waiting.pop()
        if state in finals:
            found.append((path, finals[state]))
        waiting += [(arc.end, [*path, arc]) for arc in arcs if arc.begin == state]
    return found


def cost(path: list[Arc], final: tuple, scale: float, penalty: float) -> float:
    return sum(arc.graph + scale * arc.acoustic + penalty * (arc.word != 0) for arc in path) + (
        final[0] + scale * final[1]
    )


@given(lattices(), st.sampled_from([0.1, 0.5, 2.0]), st.sampled_from([-1.0, 0.0, 1.5]))
@settings(max_examples=150)
def test_best_path_is_the_best_of_all(
    tmp_path_factory: pytest.TempPathFactory, made, scale: float, penalty: float
) -> None:
    start, arcs, finals = made
    searched_at = 0.5
    file = tmp_path_factory.mktemp("lattice") / "a.lat"
    lattice = lattice_from_openfst(as_openfst(file, start, arcs, finals), searched_at)
    path = lattice.best_path(scale, penalty)
    every = [
        (cost(each, final, scale / searched_at, penalty), [a.word for a in each if a.word])
        for each, final in all_paths(start, arcs, finals)
    ]
    if not every:
        assert len(path) == 0
        return
    got = float(
        lattice.graph[path].sum()
        + scale * lattice.acoustic[path].sum()
        + penalty * (lattice.word[path] != 0).sum()
    )
    last = lattice.end[path[-1]] if len(path) else 0
    got += float(lattice.final_graph[last] + scale * lattice.final_acoustic[last])
    least = min(value for value, _ in every)
    assert got == pytest.approx(least, abs=1e-3)
    words = lattice.words_of(path).tolist()
    assert words in [spelled for value, spelled in every if value <= least + 1e-3]


def test_states_are_in_topological_order(tmp_path) -> None:
    arcs = [Arc(3, 1, 1, 0, 0), Arc(1, 0, 2, 0, 0), Arc(0, 2, 3, 0, 0), Arc(3, 2, 4, 9, 0)]
    data = as_openfst(tmp_path / "a", 3, arcs, {2: (0.0, 0.0)})
    lattice = lattice_from_openfst(data, 1.0)
    begin = np.repeat(np.arange(4), np.diff(lattice.first_arc))
    assert (begin < lattice.end).all()
    assert lattice.words_of(lattice.best_path(1.0, 0.0)).tolist() == [1, 2, 3]
    assert lattice.words_of(lattice.best_path(1.0, 10.0)).tolist() == [4]


def test_states_that_cannot_be_reached_are_left_out(tmp_path) -> None:
    arcs = [Arc(0, 1, 1, 0, 0), Arc(2, 1, 2, 0, 0)]
    lattice = lattice_from_openfst(as_openfst(tmp_path / "a", 0, arcs, {1: (0.0, 0.0)}), 1.0)
    assert lattice.word.tolist() == [1]


def test_a_cycle_is_refused(tmp_path) -> None:
    arcs = [Arc(0, 1, 1, 0, 0), Arc(1, 0, 2, 0, 0)]
    with pytest.raises(ValueError, match="cycle"):
        lattice_from_openfst(as_openfst(tmp_path / "a", 0, arcs, {1: (0.0, 0.0)}), 1.0)


def test_other_files_are_refused(tmp_path) -> None:
    kaldifst.compile("0 1 1 1\n1\n").write(str(tmp_path / "a"))
    for data in ((tmp_path / "a").read_bytes(), b"hello", b""):
        with pytest.raises(ValueError, match=r"lattice weights|not a binary OpenFst"):
            lattice_from_openfst(data, 1.0)
