"""HTK's label files: a master label file (MLF) with a state for each stretch of time.

    #!MLF!#
    "*/cen1-fash-b.lab"        an utterance: the path of the label file it stands for
    0 100000 sil[2] -0.78      start and end in 100 ns, state; what follows is not read
    100000 5500000 sil[3]
    .                          its end

Source: The HTK Book, "Label Files" and "Master Label Files". Of what it allows there, alternatives
(`///`), quoted labels, and sub-directory definitions (`"*.lab" -> "dir"`) are refused.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_lines

HEADER = "#!MLF!#"
MAX_LINE = 65_536
"""Bytes; a longer line is no label file's."""
MAX_FRAMES = 10_000_000
"""Of an utterance, over a day at 10 ms; more is a damaged time, and would fill the memory."""
TOLERANCE = 0.01
"""Of a frame: how far a time may be from a frame's edge; HTK has them in single precision."""
_SHOWN = 60
"""Characters of a wrong line that a message shows."""


@dataclass(frozen=True)
class LabelledUtterance:
    """One utterance of an MLF."""

    path: str
    """Of the label file it stands for, as written, without quotes."""
    line: int
    """Where in the MLF it begins, from 1."""
    labels: npt.NDArray[np.int32]
    """Number of the state of each frame, (T,)."""

    @property
    def name(self) -> str:
        """The path without folders and without its last suffix."""
        base = re.split(r"[/\\]", self.path)[-1]
        return base.rpartition(".")[0] or base


def read_state_list(path: Path) -> dict[str, int]:
    """The number of each state, from 0, of a file with one state a line, in order.

    Raises UserError, naming the line, if a line is not one word or is there twice.
    """
    states: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        words = line.split()
        if len(words) != 1:
            raise UserError(f"{path}, line {number}: expected one state, found '{line[:_SHOWN]}'")
        if words[0] in states:
            raise UserError(
                f"{path}, lines {states[words[0]] + 1} and {number}: both are {words[0]}; "
                "remove one"
            )
        states[words[0]] = len(states)
    return states


def read_mlf(
    path: Path, states: Mapping[str, int], frame_shift: int
) -> Iterator[LabelledUtterance]:
    """The utterances of an MLF, one after the other; only one is in memory at a time.

    `frame_shift` is in 100 ns. Raises UserError, naming file and line, where the file is not as
    the legend above says, a state is not in `states`, an utterance comes twice, or its times do
    not follow each other from 0 on, without gap or overlap, in whole frames.
    """
    lines = _Lines(path)
    if next(lines, "") != HEADER:
        raise lines.error(f"expected {HEADER}; is this a master label file?")
    begun: dict[str, int] = {}
    for line in lines:
        match = re.fullmatch(r'"([^"]+)"', line)
        if not match:
            raise lines.error(f"expected an utterance such as \"*/name.lab\", found '{_cut(line)}'")
        if match[1] in begun:
            raise lines.error(f'"{match[1]}" is on line {begun[match[1]]} already; remove one')
        begun[match[1]] = begin = lines.number
        yield LabelledUtterance(match[1], begin, _read_labels(lines, states, frame_shift))


@dataclass
class _Lines:
    """Iterates over the lines of a text file that are not blank, stripped; knows the number."""

    path: Path
    number: int = 0
    _iterator: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self._iterator = self._read()

    def __iter__(self) -> Iterator[str]:
        return self._iterator

    def __next__(self) -> str:
        return next(self._iterator)

    def error(self, message: str) -> UserError:
        """The error for the line that was read last."""
        return UserError(f"{self.path}, line {max(self.number, 1)}: {message}")

    def _read(self) -> Iterator[str]:
        try:
            with open(self.path, "rb") as file:
                while line := file.readline(MAX_LINE + 1):
                    self.number += 1
                    text = self._decode(line)
                    if text:
                        yield text
        except OSError as error:
            raise UserError(f"{self.path}: {error.strerror}") from error

    def _decode(self, line: bytes) -> str:
        if len(line) > MAX_LINE:
            raise self.error(f"longer than {MAX_LINE} bytes; the file is damaged or not text")
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as error:
            raise self.error(f"not UTF-8 text at its byte {error.start + 1}") from error
        if not text.replace("\t", " ").isprintable():
            raise self.error("holds control characters; the file is damaged or not text")
        return text


def _read_labels(
    lines: _Lines, states: Mapping[str, int], frame_shift: int
) -> npt.NDArray[np.int32]:
    """The labels of each frame up to the line `.`."""
    numbers, counts, position, begun = [], [], 0, lines.number
    for line in lines:
        if line == ".":
            return np.repeat(np.array(numbers, np.int32), np.array(counts, np.int64))
        if line.startswith('"'):
            raise lines.error(f"the utterance of line {begun} has no end, a line with a dot")
        words = line.split()
        if len(words) < 3 or not all(re.fullmatch("[0-9]{1,18}", each) for each in words[:2]):
            raise lines.error(f"expected `start end state`, found '{_cut(line)}'")
        if words[2] not in states:
            raise lines.error(f"unknown state '{_cut(words[2])}'; add it to the list of states")
        count = _count_frames(lines, int(words[0]), int(words[1]), position, frame_shift)
        numbers.append(states[words[2]])
        counts.append(count)
        position += count
    raise lines.error(f"the file ends in the utterance of line {begun}; expected a line with a dot")


def _count_frames(lines: _Lines, start: int, end: int, position: int, frame_shift: int) -> int:
    """Frames from `start` to `end`, in 100 ns, which must follow the first `position` frames."""
    for time in (start, end):
        if abs(time - _frame(time, frame_shift) * frame_shift) > TOLERANCE * frame_shift:
            raise lines.error(f"{time} is no multiple of frame_shift_100ns={frame_shift}")
    first, last = _frame(start, frame_shift), _frame(end, frame_shift)
    if last <= first:
        raise lines.error(f"the times {start} to {end} go backwards or stand still")
    if first != position:
        kind = "overlaps the one before" if first < position else "leaves a gap"
        raise lines.error(f"begins at {start}, expected {position * frame_shift}: it {kind}")
    if last > MAX_FRAMES:
        raise lines.error(f"ends at {end}, after more than {MAX_FRAMES} frames; a damaged time")
    return last - first


def _frame(time: int, frame_shift: int) -> int:
    """The nearest frame boundary."""
    return (time + frame_shift // 2) // frame_shift


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
