"""A data directory: who said what in which recording, in Kaldi's tables.

    text          utterance id, words
    utt2spk       utterance id, speaker id
    spk2utt       speaker id, utterance ids (the inverse, written for Kaldi's scripts)
    wav.scp       utterance id, audio file        } one of these
    cepstra.scp   utterance id, Sphinx .mfc file  }

Utterance ids begin with the speaker id, so that sorting by either gives the same order.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_table, write_table

RECORDING_TABLES = ("wav.scp", "cepstra.scp")


@dataclass(frozen=True)
class DataDirectory:
    """The tables of a data directory; all have the same utterances."""

    path: Path
    """Where it was read from, for messages."""
    text: dict[str, list[str]]
    """Words of each utterance."""
    utt2spk: dict[str, str]
    """Speaker of each utterance."""
    recording_table: str = ""
    """`wav.scp` or `cepstra.scp`, or empty where neither is there."""
    recordings: dict[str, str] | None = None
    """Path of each utterance's file, if `recording_table` is not empty."""

    @property
    def utterances(self) -> list[str]:
        """Utterance ids in byte order."""
        return sorted(self.utt2spk, key=str.encode)

    @property
    def spk2utt(self) -> dict[str, list[str]]:
        """Utterance ids of each speaker, in byte order."""
        speakers: defaultdict[str, list[str]] = defaultdict(list)
        for utterance in self.utterances:
            speakers[self.utt2spk[utterance]].append(utterance)
        return dict(speakers)

    @classmethod
    def read(cls, path: str | Path) -> "DataDirectory":
        """Read and check. Raises UserError, naming file and utterance, for tables that disagree."""
        path = Path(path)
        utt2spk = read_table(path / "utt2spk")
        text = read_table(path / "text")
        _check_same_utterances(path / "utt2spk", utt2spk, path / "text", text)
        for utterance, speaker in utt2spk.items():
            if not speaker:
                raise UserError(f"{path / 'utt2spk'}: {utterance} has no speaker")
        table = next((each for each in RECORDING_TABLES if (path / each).exists()), "")
        recordings = read_table(path / table) if table else None
        if recordings is not None:
            _check_same_utterances(path / "utt2spk", utt2spk, path / table, recordings)
        words = {utterance: rest.split() for utterance, rest in text.items()}
        return cls(path, words, utt2spk, table, recordings)

    def write(self, path: Path) -> None:
        """Write all tables into an existing folder."""
        write_table(path / "text", {key: " ".join(words) for key, words in self.text.items()})
        write_table(path / "utt2spk", self.utt2spk)
        write_table(path / "spk2utt", {key: " ".join(utts) for key, utts in self.spk2utt.items()})
        if self.recordings is not None:
            write_table(path / self.recording_table, self.recordings)

    def subset(self, utterances: Iterable[str]) -> "DataDirectory":
        """The same directory with only some of its utterances."""
        kept = set(utterances)
        recordings = self.recordings and _keep(self.recordings, kept)
        return replace(
            self,
            text=_keep(self.text, kept),
            utt2spk=_keep(self.utt2spk, kept),
            recordings=recordings,
        )


def _keep(table: dict, kept: set[str]) -> dict:
    return {key: value for key, value in table.items() if key in kept}


def _check_same_utterances(path: Path, table: dict, other_path: Path, other: dict) -> None:
    for has, lacks, keys in (
        (path, other_path, table.keys() - other.keys()),
        (other_path, path, other.keys() - table.keys()),
    ):
        if keys:
            first = min(keys, key=str.encode)
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            raise UserError(
                f"{lacks}: no entry for utterance {first}{more}, which {has.name} has; "
                "add it, or remove the utterance from the other tables"
            )
