"""The verb `compare`: arms against a baseline, in accuracy, wire bytes and time."""

import json
import logging
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from asrtrain.io.settings import StageConfig, require
from asrtrain.io.stage import stage, write_counts
from asrtrain.score.arms import Arm, Scored, check_same_sets, read_arms
from asrtrain.score.bootstrap import Bootstrap
from asrtrain.score.report import markdown, verdicts

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CompareConfig(StageConfig):
    """Settings of `compare`."""

    baseline: str
    """Directory of the trained arm that the others are measured against."""
    arms: list[str] = field(default_factory=list)
    """Directories of the other arms, at least one: key=[DIR,DIR]."""
    dev: str = "score_dev"
    """Name of the dev set's score within each arm's directory."""
    test: str = "score_test"
    """Name of the test set's score, likewise."""
    samples: int = 10_000
    """Bootstrap draws, at least 100."""
    confidence: float = 0.95
    """Of the intervals, between 0 and 1."""
    seed: int = 1
    """Of the draws."""

    def __post_init__(self) -> None:
        require(bool(self.arms), "arms=[]: expected at least one directory, arms=[DIR,...]")
        require(self.samples >= 100, f"samples={self.samples}: expected at least 100")
        require(0 < self.confidence < 1, f"confidence={self.confidence}: expected between 0 and 1")

    @property
    def score_directories(self) -> list[str]:
        """The scores that the comparison reads; one that is missing is named when it is read."""
        arms = (self.baseline, *self.arms)
        scores = [f"{arm}/{name}" for arm in arms for name in (self.dev, self.test)]
        return [each for each in scores if Path(each).exists()]


@stage("compare", inputs=("baseline", "arms", "score_directories"))
def compare(config: CompareConfig, out: Path) -> None:
    """Compare trained arms: compare.json and compare.md.

    For each arm: frame accuracy, WER with its bootstrap interval over utterances, wire bytes a
    step, wall time. For each arm against the baseline: the difference in test WER with a paired
    bootstrap interval, and what it says.
    """
    baseline, *arms = read_arms((config.baseline, *config.arms), config.dev, config.test)
    for arm in arms:
        check_same_sets(arm, baseline)
    bootstrap = Bootstrap(config.samples, config.confidence, config.seed)
    result = {
        "confidence": config.confidence,
        "samples": config.samples,
        "baseline": baseline.name,
        "arms": [_arm_figures(arm, bootstrap) for arm in (baseline, *arms)],
        "pairs": [_pair_figures(arm, baseline, bootstrap) for arm in arms],
    }
    (out / "compare.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / "compare.md").write_text(markdown(result))
    for verdict in verdicts(result):
        log.info("%s", verdict)
    write_counts(out, arms=1 + len(arms), utterances=len(baseline.test.utterances))


def _arm_figures(arm: Arm, bootstrap: Bootstrap) -> dict[str, Any]:
    return {
        "name": arm.name,
        "training": arm.training,
        "dev": _set_figures(arm.dev, bootstrap),
        "test": _set_figures(arm.test, bootstrap),
        "acoustic_scale": arm.dev.scale,
        "word_penalty": arm.dev.penalty,
    }


def _set_figures(scored: Scored, bootstrap: Bootstrap) -> dict[str, Any]:
    interval = bootstrap.wer(scored.errors, scored.words)
    return {"utterances": len(scored.utterances), "wer": asdict(interval)} | asdict(scored.counts)


def _pair_figures(arm: Arm, baseline: Arm, bootstrap: Bootstrap) -> dict[str, Any]:
    return {
        "arm": arm.name,
        "baseline": baseline.name,
        "wer_difference": {
            name: asdict(bootstrap.difference(own.errors, other.errors, own.words))
            for name, own, other in (
                ("dev", arm.dev, baseline.dev),
                ("test", arm.test, baseline.test),
            )
        },
        "wire_bytes_ratio": _ratio(arm, baseline, "wire_bytes_per_step"),
        "seconds_ratio": _ratio(arm, baseline, "seconds"),
        "frames_per_second_ratio": _ratio(arm, baseline, "frames_per_second"),
    }


def _ratio(arm: Arm, baseline: Arm, key: str) -> float | None:
    """The arm's figure over the baseline's; None where the baseline's is 0, as on one worker."""
    return arm.training[key] / baseline.training[key] if baseline.training[key] else None
