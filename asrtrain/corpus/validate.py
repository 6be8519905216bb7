"""The verb `data-validate`: what Kaldi's utils/validate_data_dir.sh checks, with a way out."""

import logging
from dataclasses import dataclass
from pathlib import Path

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.errors import UserError
from asrtrain.io.tables import read_table

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ValidateConfig:
    """Settings of `data-validate`."""

    data: str
    """Data directory, with or without features."""
    files: bool = True
    """Whether every recording must exist."""
    text: bool = True
    """Whether every utterance must have words."""


def validate(config: ValidateConfig) -> None:
    """Check a data directory: sorted tables without duplicates that agree with each other.

    Exit status 1 and one line for the first thing that is wrong.
    """
    directory = DataDirectory.read(config.data)
    path = Path(config.data)
    _check_speakers(path, directory)
    for utterance, words in directory.text.items():
        if config.text and not words:
            raise UserError(f"{path / 'text'}: {utterance} has no words; remove the utterance")
    if config.files and directory.recordings is not None:
        for utterance, file in directory.recordings.items():
            if not Path(file).is_file():
                raise UserError(f"{path / directory.recording_table}: {utterance}: {file}: no file")
    if (path / "feats.scp").exists():
        missing = directory.utt2spk.keys() - read_table(path / "feats.scp").keys()
        if missing:
            raise UserError(
                f"{path / 'feats.scp'}: no features for {min(missing)}; make them again"
            )
    log.info(
        "%s: %d utterances of %d speakers, all well",
        path,
        len(directory.utterances),
        len(directory.spk2utt),
    )


def _check_speakers(path: Path, directory: DataDirectory) -> None:
    if (path / "spk2utt").exists():
        written = {key: rest.split() for key, rest in read_table(path / "spk2utt").items()}
        for speaker in written.keys() | directory.spk2utt.keys():
            if written.get(speaker) != directory.spk2utt.get(speaker):
                raise UserError(
                    f"{path / 'spk2utt'}: speaker {speaker} disagrees with utt2spk; "
                    "remove spk2utt, it is derived"
                )
    by_utterance = [directory.utt2spk[utterance] for utterance in directory.utterances]
    if by_utterance != sorted(by_utterance, key=str.encode):
        raise UserError(
            f"{path / 'utt2spk'}: sorting by utterance does not sort by speaker; "
            "begin utterance ids with the speaker id"
        )
