#!/usr/bin/env python3
"""Prints WER on test (frame accuracy in training) of the arms that paper_tables.sh has trained."""

import argparse
from pathlib import Path

from seeds import markdown_table, spread

from asrtrain.cli.main import exit_status
from asrtrain.score.arms import read_arms

SCORES = ("score_dev", "score_test")
NETWORKS = ("sigmoid", "relu", "svd")
WAYS = {
    "one": "not parallel",
    "four": "1-bit, K = 4",
    "double": "+ double buffering",
    "warm": "+ double buffering, after a warm start",
}
ADAGRAD = {
    "smoothed": "momentum-smoothed, not parallel",
    "raw": "raw, not parallel",
    "partial": "partial, 1-bit, K = 4",
    "aggregate": "aggregate, 1-bit, K = 4",
    "double": "aggregate, + double buffering",
}


def tables(exp: Path, seeds: list[str]) -> None:
    """Both tables in Markdown."""

    def cell(arm: str) -> str:
        runs = read_arms([str(exp / arm / f"seed{seed}") for seed in seeds], *SCORES)
        wers = [100 * each.test.counts.errors / each.test.counts.words for each in runs]
        accuracies = [100 * each.training["train_frame_accuracy"] for each in runs]
        return f"{spread(wers, '.2f')} ({spread(accuracies, '.1f')})"

    print(
        f"WER % on test, in brackets frame accuracy % of the training set: mean of {len(seeds)} "
        "seed(s) and half-width\nof the 95 % interval over seeds.\n"
    )
    rows = [[title, *(cell(f"{each}_{way}") for each in NETWORKS)] for way, title in WAYS.items()]
    print(markdown_table(["", *NETWORKS], rows) + "\n")
    places = [[title, cell(f"adagrad_{place}")] for place, title in ADAGRAD.items()]
    print(markdown_table(["AdaGrad on", "sigmoid"], places))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exp", type=Path, required=True, help="holds ARM/seedN")
    parser.add_argument("--seeds", nargs="+", required=True)
    options = parser.parse_args()
    tables(options.exp, options.seeds)


if __name__ == "__main__":
    raise SystemExit(exit_status("paper_tables.py", main))
