#!/usr/bin/env python3
"""Prints cross entropy and frame error by epoch of the arms that cntk_ab.sh has trained."""

import argparse
from pathlib import Path

from seeds import epochs_of, markdown_table, spread

from asrtrain.cli.main import exit_status


def table(exp: Path, arms: list[str], seeds: list[str]) -> None:
    """One row an arm; the first arm is what the others are compared with, seed by seed."""
    figures = {arm: [epochs_of(exp / arm / f"seed{seed}") for seed in seeds] for arm in arms}
    epochs = len(figures[arms[0]][0])
    header = ["arm", *(f"epoch {epoch + 1}" for epoch in range(epochs)), f"against {arms[0]}"]
    rows = []
    for arm in arms:
        by_epoch = [[run[epoch] for run in figures[arm]] for epoch in range(epochs)]
        cells = [
            f"{spread([each['train_loss'] for each in runs])}, "
            f"{spread([100 * (1 - each['train_frame_accuracy']) for each in runs], '.2f')} %"
            for runs in by_epoch
        ]
        losses = zip(figures[arm], figures[arms[0]], strict=True)
        above = [100 * (own[-1]["train_loss"] / base[-1]["train_loss"] - 1) for own, base in losses]
        rows.append([arm, *cells, "" if arm == arms[0] else f"{spread(above, '+.2f')} %"])
    print(
        f"Cross entropy (nats a frame) and frame error of the training frames as they were trained "
        f"on, mean of\n{len(seeds)} seed(s) and half-width of the 95 % interval; last column: "
        "cross entropy of the last epoch, seed by seed.\n"
    )
    print(markdown_table(header, rows))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exp", type=Path, required=True, help="holds ARM/seedN")
    parser.add_argument("--arms", nargs="+", required=True, help="the first one is the baseline")
    parser.add_argument("--seeds", nargs="+", required=True)
    options = parser.parse_args()
    table(options.exp, options.arms, options.seeds)


if __name__ == "__main__":
    raise SystemExit(exit_status("cntk_table.py", main))
