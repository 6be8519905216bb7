"""A made-up language whose phones are far apart, so that a small GMM-HMM learns it in seconds."""

from pathlib import Path

import numpy as np

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.io.archive import MatrixWriter
from asrtrain.lang.lm import LmConfig
from asrtrain.lang.lm import build as build_lm
from asrtrain.lang.prepare import LangConfig, prepare

DIM = 4
LEXICON = {"la": ["L A"], "al": ["A L"], "mama": ["M A M A"], "am": ["A M", "A A M"]}
PHONES = ["A", "L", "M"]
STATES = {"SIL": 1, "A": 3, "L": 3, "M": 3}


def write_dict(folder: Path) -> Path:
    """A dict directory of LEXICON."""
    folder.mkdir(parents=True)
    lines = [f"{word} {phones}" for word, each in LEXICON.items() for phones in each]
    (folder / "lexicon.txt").write_text("\n".join(lines) + "\n")
    (folder / "silence_phones.txt").write_text("SIL\n")
    (folder / "nonsilence_phones.txt").write_text("\n".join(PHONES) + "\n")
    (folder / "optional_silence.txt").write_text("SIL\n")
    return folder


def state_means() -> dict[str, np.ndarray]:
    """Where each phone's states lie: (states, DIM)."""
    generator = np.random.default_rng(0)
    return {phone: generator.standard_normal((states, DIM)) * 2 for phone, states in STATES.items()}


def write_features(folder: Path, utterances: int, seed: int) -> Path:
    """A features directory of random sentences: silence, words, silence; 3 to 6 frames a state."""
    folder.mkdir(parents=True)
    centres = np.random.default_rng(0)
    means = {phone: centres.standard_normal((states, DIM)) * 2 for phone, states in STATES.items()}
    generator = np.random.default_rng(seed)
    text, matrices = {}, {}
    for number in range(utterances):
        words = [str(each) for each in generator.choice(list(LEXICON), generator.integers(2, 5))]
        phones = ["SIL"]
        for word in words:
            phones += str(generator.choice(LEXICON[word])).split()
        frames = [
            np.tile(
                mean, (generator.integers(6, 9) if phone == "SIL" else generator.integers(3, 7), 1)
            )
            for phone in [*phones, "SIL"]
            for mean in means[phone]
        ]
        clean = np.concatenate(frames)
        name = f"s{number % 3}-u{number:03}"
        text[name] = words
        matrices[name] = (clean + 0.5 * generator.standard_normal(clean.shape)).astype(np.float32)
    utt2spk = {name: name.partition("-")[0] for name in text}
    DataDirectory(folder, text, utt2spk).write(folder)
    with MatrixWriter(folder, "feats") as writer:
        for name in sorted(matrices):
            writer.write(name, matrices[name])
    return folder


def make_language(folder: Path, data: Path) -> tuple[Path, Path]:
    """The lang and the lm directory."""
    write_dict(folder / "dict")
    prepare(LangConfig(dict=str(folder / "dict"), out=str(folder / "lang")))
    build_lm(LmConfig(data=str(data), lang=str(folder / "lang"), out=str(folder / "lm")))
    return folder / "lang", folder / "lm"
