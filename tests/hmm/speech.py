"""Synthetic speech: each phone has a mean of its own, so an alignment can be right or wrong."""

from pathlib import Path

import numpy as np

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.archive import MatrixWriter
from asrtrain.lang.prepare import LangConfig, prepare
from tests.lang.dictionaries import small_dict

PHONES = ("SIL", "AH", "B", "D", "EY", "IY", "S")
SPELLING = {"A": "AH", "BE": "B IY", "BEAD": "B IY D", "SEA": "S IY"}
FRAMES_A_PHONE = 9
DIM = 6


def synthetic_corpus(folder: Path, utterances: int, seed: int = 1) -> dict[str, list[str]]:
    """Make folder/lang and folder/feats; return the true phone of each frame by utterance."""
    prepare(LangConfig(dict=str(small_dict(folder / "dict")), out=str(folder / "lang")))
    generator = np.random.default_rng(seed)
    means = np.random.default_rng(0).standard_normal((len(PHONES), DIM)) * 3
    words = list(SPELLING)
    text, truth, features = {}, {}, {}
    for number in range(utterances):
        utterance = f"s{number:03d}"
        text[utterance] = [words[each] for each in generator.integers(0, len(words), 3)]
        phones = ["SIL"]
        for word in text[utterance]:
            phones += SPELLING[word].split()
        phones.append("SIL")
        truth[utterance] = [phone for phone in phones for _ in range(FRAMES_A_PHONE)]
        rows = np.array([means[PHONES.index(phone)] for phone in truth[utterance]])
        features[utterance] = rows + generator.standard_normal(rows.shape)
    write_features(folder / "feats", text, features)
    return truth


def write_features(path: Path, text: dict[str, list[str]], features: dict[str, np.ndarray]) -> None:
    """A features directory, normalized over all utterances."""
    path.mkdir(parents=True, exist_ok=True)
    DataDirectory(path, text, {each: each for each in text}).write(path)
    together = np.concatenate(list(features.values()))
    with MatrixWriter(path, "feats") as writer:
        for utterance in sorted(features):
            rows = (features[utterance] - together.mean(axis=0)) / together.std(axis=0)
            writer.write(utterance, rows.astype(np.float32))
