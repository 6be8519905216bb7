"""The table of verbs: names only, so that listing them imports nothing."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Verb:
    """One command: where its typed config and its function live, and what it does."""

    module: str
    config: str
    function: str
    summary: str

    def load(self) -> tuple[type, Any]:
        """Import the module; return the config class and the function."""
        module = import_module(self.module)
        return getattr(module, self.config), getattr(module, self.function)


VERBS = {
    "data-validate": Verb(
        "asrtrain.corpus.validate", "ValidateConfig", "validate", "check a data directory"
    ),
    "data-split": Verb(
        "asrtrain.corpus.split",
        "SplitConfig",
        "split",
        "hold out speakers as a second data directory",
    ),
    "data-subset": Verb(
        "asrtrain.corpus.split", "SubsetConfig", "subset", "keep some speakers or utterances"
    ),
    "feats": Verb(
        "asrtrain.feats.extract", "FeatsConfig", "extract", "audio or cepstra to features"
    ),
    "cmvn": Verb("asrtrain.feats.cmvn", "CmvnConfig", "cmvn", "mean and variance statistics"),
    "lang": Verb("asrtrain.lang.prepare", "LangConfig", "prepare", "lexicon to L.fst and symbols"),
    "lm": Verb("asrtrain.lang.lm", "LmConfig", "build", "n-gram from transcripts, G.fst"),
    "graph": Verb("asrtrain.decode.graph", "GraphConfig", "build", "decoding graph HCLG.fst"),
    "gmm": Verb("asrtrain.hmm.gmm", "GmmConfig", "train", "GMM-HMM from a flat start"),
    "align": Verb("asrtrain.hmm.align", "AlignConfig", "align", "forced alignment"),
    "import-ali": Verb(
        "asrtrain.hmm.import_ali", "ImportConfig", "import_ali", "state labels of an HTK system"
    ),
    "frames": Verb(
        "asrtrain.frames.label", "FramesConfig", "label", "features and labels as shards"
    ),
    "train": Verb("asrtrain.train.verb", "TrainConfig", "train", "the DNN, on one or more workers"),
    "decode": Verb("asrtrain.decode.decode", "DecodeConfig", "decode", "features to hypotheses"),
    "score": Verb("asrtrain.score.wer", "ScoreConfig", "score", "word error rate"),
    "compare": Verb(
        "asrtrain.score.compare", "CompareConfig", "compare", "arms against a baseline"
    ),
    "doctor": Verb("asrtrain.cli.doctor", "DoctorConfig", "doctor", "check this installation"),
}
