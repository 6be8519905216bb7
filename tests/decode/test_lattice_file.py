"""Lattices against the enumeration of their paths, and against the library's shortest path."""

import math
from pathlib import Path

import kaldifst
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asrtrain.decode.lattice import Lattice, lattice_from_openfst

Arc = tuple[int, int, int, int, float, float]
"""Source, end, transition id, word, graph cost, acoustic cost."""


def to_library(arcs: list[Arc], finals: dict[int, float], states: int) -> kaldifst.Lattice:
    fst = kaldifst.Lattice()
    for _ in range(states):
        fst.add_state()
    fst.start = 0
    for source, end, transition, word, graph, acoustic in arcs:
        weight = kaldifst.LatticeWeight(graph, acoustic)
        fst.add_arc(source, kaldifst.LatticeArc(transition, word, weight, end))
    for state, cost in finals.items():
        fst.set_final(state, kaldifst.LatticeWeight(cost, 0.0))
    return fst


def read_back(fst: kaldifst.Lattice, folder: Path, scale: float = 1.0) -> Lattice:
    fst.write(str(folder / "x.lat"))
    return lattice_from_openfst((folder / "x.lat").read_bytes(), scale)


def all_paths(arcs: list[Arc], finals: dict[int, float]) -> list[tuple[tuple, float, float, int]]:
    """(words, graph, acoustic, number of words) of every path from state 0 to a final state."""
    found, waiting = [], [(0, (), 0.0, 0.0)]
    while waiting:
        state, words, graph, acoustic = waiting.pop()
        if state in finals:
            found.append((words, graph + finals[state], acoustic, len(words)))
        for source, end, _, word, more_graph, more_acoustic in arcs:
            if source == state:
                said = (*words, word) if word else words
                waiting.append((end, said, graph + more_graph, acoustic + more_acoustic))
    return found


@st.composite
def small_lattices(draw: st.DrawFn) -> tuple[list[Arc], dict[int, float], int]:
    """Random acyclic lattices; states are shuffled, so that they are not in topological order."""
    states = draw(st.integers(1, 6))
    names = [0, *draw(st.permutations(range(1, states)))]
    cost = st.integers(-32, 32).map(lambda value: value / 8)  # exact in float32
    pairs = [(one, other) for one in range(states) for other in range(one + 1, states)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=9)) if pairs else []
    arcs = [
        (
            names[one],
            names[other],
            draw(st.integers(0, 3)),
            draw(st.integers(0, 3)),
            draw(cost),
            draw(cost),
        )
        for one, other in chosen
    ]
    members = draw(st.lists(st.integers(0, states - 1), unique=True))
    return arcs, {state: draw(cost) for state in members}, states


@settings(deadline=None)  # the first call compiles
@given(lattice=small_lattices(), scale=st.sampled_from([0.0, 0.125, 1.0, 2.0]),
       penalty=st.sampled_from([-1.0, 0.0, 0.5]))  # fmt: skip
def test_best_path_is_the_least_of_all_paths(
    tmp_path_factory: pytest.TempPathFactory, lattice: tuple, scale: float, penalty: float
) -> None:
    arcs, finals, states = lattice
    read = read_back(to_library(arcs, finals, states), tmp_path_factory.mktemp("lattice"))
    path = read.best_path(scale, penalty)
    costs = [
        (graph + scale * acoustic + penalty * count, words)
        for words, graph, acoustic, count in all_paths(arcs, finals)
    ]
    least = min((cost for cost, _ in costs), default=math.inf)
    if math.isinf(least):
        assert len(path) == 0
        return
    words = tuple(read.words_of(path).tolist())
    assert words in {said for cost, said in costs if cost == least}


def test_both_costs_survive_and_the_search_scale_is_taken_out(tmp_path: Path) -> None:
    arcs = [(0, 2, 5, 7, 1.5, 0.25), (2, 1, 6, 0, 0.5, 0.75)]
    read = read_back(to_library(arcs, {1: 2.0}, 3), tmp_path, scale=0.25)
    assert read.transition_id.tolist() == [5, 6]
    assert read.word.tolist() == [7, 0]
    assert read.graph.tolist() == [1.5, 0.5]
    assert read.acoustic.tolist() == [1.0, 3.0]
    assert read.final_graph.tolist() == [math.inf, math.inf, 2.0]


@settings(deadline=None)
@given(lattice=small_lattices())
def test_states_are_in_topological_order(
    tmp_path_factory: pytest.TempPathFactory, lattice: tuple
) -> None:
    arcs, finals, states = lattice
    read = read_back(to_library(arcs, finals, states), tmp_path_factory.mktemp("lattice"))
    source = np.repeat(np.arange(len(read.final_graph)), np.diff(read.first_arc))
    assert (read.end > source).all()


def test_states_that_the_start_does_not_lead_to_are_left_out(tmp_path: Path) -> None:
    arcs = [(0, 1, 1, 1, 0.0, 0.0), (2, 1, 2, 2, -9.0, 0.0)]
    read = read_back(to_library(arcs, {1: 0.0, 2: -9.0}, 3), tmp_path)
    assert read.word.tolist() == [1]
    assert len(read.final_graph) == 2


def test_a_penalty_above_0_prefers_fewer_words(tmp_path: Path) -> None:
    arcs = [(0, 1, 1, 4, 2.0, 0.0), (0, 2, 2, 5, 0.5, 0.0), (2, 1, 3, 6, 1.0, 0.0)]
    read = read_back(to_library(arcs, {1: 0.0}, 3), tmp_path)
    for penalty, words in ((0.0, [5, 6]), (0.4, [5, 6]), (0.6, [4]), (-1.0, [5, 6])):
        assert read.words_of(read.best_path(1.0, penalty)).tolist() == words


@pytest.mark.parametrize("kept", [0, 3, 20, 50, 90, -1])
def test_damaged_data_are_refused(tmp_path: Path, kept: int) -> None:
    fst = to_library([(0, 1, 1, 1, 0.0, 0.0)], {1: 0.0}, 2)
    fst.write(str(tmp_path / "x.lat"))
    with pytest.raises(ValueError, match=r"OpenFst|truncated|vector FST"):
        lattice_from_openfst((tmp_path / "x.lat").read_bytes()[:kept], 1.0)


def test_a_cycle_is_refused(tmp_path: Path) -> None:
    arcs = [(0, 1, 1, 1, 0.0, 0.0), (1, 2, 1, 1, 0.0, 0.0), (2, 1, 1, 1, 0.0, 0.0)]
    with pytest.raises(ValueError, match="cycle"):
        read_back(to_library(arcs, {2: 0.0}, 3), tmp_path)
