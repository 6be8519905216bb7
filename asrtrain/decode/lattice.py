"""Lattices as arrays: every hypothesis that the search kept, graph and acoustic cost apart.

A arcs, sorted by source state; N states, numbered in topological order; state 0 is the start.
Costs are negated log probabilities; acoustic costs are unscaled.
"""

import struct
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]

_MAGIC = 2125659606
_ARC = np.dtype(
    [("input", "<i4"), ("output", "<i4"), ("graph", "<f4"), ("acoustic", "<f4"), ("end", "<i4")]
)


@dataclass(frozen=True)
class Lattice:
    """An acyclic lattice."""

    first_arc: Integers
    """(N + 1,) state n's arcs are first_arc[n] to first_arc[n + 1]."""
    end: Integers
    """(A,) the state that an arc leads to."""
    transition_id: Integers
    """(A,) 0 for none: a frame has one on each path."""
    word: Integers
    """(A,) 0 for none."""
    graph: Floats
    """(A,) language model, pronunciation and transition costs."""
    acoustic: Floats
    """(A,) cost of a frame."""
    final_graph: Floats
    """(N,) cost of ending there; infinite where one cannot."""
    final_acoustic: Floats
    """(N,)."""

    def best_path(self, acoustic_scale: float, word_penalty: float) -> Integers:
        """Arcs of the path of least graph + scale * acoustic + penalty * words.

        Empty if no path ends in a final state.
        """
        scale, penalty = np.float64(acoustic_scale), np.float64(word_penalty)
        cost = self.graph + scale * self.acoustic + penalty * (self.word != 0)
        final = self.final_graph + scale * self.final_acoustic
        return _best_path(self.first_arc, self.end, cost, final)

    def words_of(self, path: Integers) -> Integers:
        """The words along a path's arcs."""
        words = self.word[path]
        return words[words != 0]


def lattice_from_openfst(data: bytes, acoustic_scale: float) -> Lattice:
    """A lattice from OpenFst's binary form of a vector FST with Kaldi's lattice weights.

    The search that made it had its likelihoods multiplied by `acoustic_scale`, which is taken out.
    Raises ValueError if the data are something else, or the lattice has a cycle.
    """
    try:
        start, count, place = _read_header(data)
    except struct.error as error:
        raise ValueError("the header of the lattice is truncated") from error
    if not 0 <= count <= (len(data) - place) // 16:
        raise ValueError(f"{count} states do not fit the lattice's data, it is truncated")
    finals = np.empty((count, 2), np.float32)
    arcs, sizes = [], np.empty(count, np.int64)
    for state in range(count):
        if place + 16 > len(data):
            raise ValueError(f"the lattice is truncated at state {state}")
        finals[state] = struct.unpack_from("<ff", data, place)
        (sizes[state],) = struct.unpack_from("<q", data, place + 8)
        if not 0 <= sizes[state] <= (len(data) - place - 16) // _ARC.itemsize:
            raise ValueError(f"the lattice is truncated at state {state}")
        arcs.append(np.frombuffer(data, _ARC, sizes[state], place + 16))
        place += 16 + sizes[state] * _ARC.itemsize
    joined = np.concatenate(arcs) if arcs else np.empty(0, _ARC)
    begin = np.repeat(np.arange(count, dtype=np.int32), sizes)
    order = _topological_order(sizes, joined["end"], start)
    if (order < 0).all() and count:
        raise ValueError("the lattice has a cycle")
    reached = (order >= 0)[begin]
    joined, begin = joined[reached], order[begin[reached]]
    sorting = np.argsort(begin, kind="stable")
    joined, begin = joined[sorting], begin[sorting]
    kept = order >= 0
    states = int(kept.sum())
    ordered_finals = np.empty((states, 2), np.float32)
    ordered_finals[order[kept]] = finals[kept]
    return Lattice(
        np.searchsorted(begin, np.arange(states + 1)).astype(np.int32),
        order[joined["end"]],
        joined["input"].copy(),
        joined["output"].copy(),
        joined["graph"].copy(),
        joined["acoustic"] / np.float32(acoustic_scale),
        ordered_finals[:, 0].copy(),
        np.where(np.isinf(ordered_finals[:, 1]), 0, ordered_finals[:, 1] / acoustic_scale).astype(
            np.float32
        ),
    )


def _read_header(data: bytes) -> tuple[int, int, int]:
    """Start state, number of states, and where the states begin."""
    if len(data) < 4 or struct.unpack_from("<i", data) != (_MAGIC,):
        raise ValueError("not a binary OpenFst file")
    place, names = 4, []
    for _ in range(2):
        (length,) = struct.unpack_from("<i", data, place)
        names.append(data[place + 4 : place + 4 + length])
        place += 4 + length
    if names[0] != b"vector" or not names[1].startswith(b"lattice4"):
        raise ValueError(f"expected a vector FST of lattice weights, found {names}")
    start, count, _ = struct.unpack_from("<qqq", data, place + 16)
    return start, count, place + 40


@numba.njit(cache=True)
def _topological_order(sizes: npt.NDArray[np.int64], ends: Integers, start: int) -> Integers:
    """New number of each state reached from `start`, -1 of the others, all -1 if there is a cycle.

    Depth first; a state is numbered, from the last, when all that follows it is.
    """
    count = len(sizes)
    first = np.zeros(count + 1, np.int64)
    first[1:] = np.cumsum(sizes)
    order = np.full(count, -1, np.int32)
    mark = np.zeros(count, np.int8)  # 1 on the stack, 2 done
    following = first[:-1].copy()
    stack, depth, number = np.empty(count, np.int64), 0, 0
    finished = np.empty(count, np.int64)
    if count:
        stack[0], depth, mark[start] = start, 1, 1
    while depth:
        state = stack[depth - 1]
        if following[state] == first[state + 1]:
            mark[state], depth = 2, depth - 1
            finished[number] = state
            number += 1
            continue
        end = ends[following[state]]
        following[state] += 1
        if mark[end] == 1:
            return np.full(count, -1, np.int32)
        if mark[end] == 0:
            stack[depth], mark[end], depth = end, 1, depth + 1
    for place in range(number):
        order[finished[place]] = number - 1 - place
    return order


@numba.njit(cache=True)
def _best_path(
    first_arc: Integers,
    end: Integers,
    cost: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
) -> Integers:
    """Viterbi over states in topological order."""
    count = len(final)
    total = np.full(count, np.inf)
    through = np.full(count, -1, np.int32)
    source = np.empty(len(end), np.int32)
    best, last = np.inf, -1
    if count:
        total[0] = 0.0
    for state in range(count):
        for arc in range(first_arc[state], first_arc[state + 1]):
            source[arc] = state
            candidate = total[state] + cost[arc]
            if candidate < total[end[arc]]:
                total[end[arc]], through[end[arc]] = candidate, arc
        if total[state] + final[state] < best:
            best, last = total[state] + final[state], state
    path = np.empty(count, np.int32)
    length = 0
    while last > 0:
        path[length] = through[last]
        last = source[through[last]]
        length += 1
    return path[:length][::-1].copy()
