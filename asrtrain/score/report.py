"""The comparison as Markdown that reads well on a terminal too."""

from typing import Any

Row = list[str]

RATIOS = {
    "wire_bytes_ratio": "wire bytes",
    "seconds_ratio": "wall time",
    "frames_per_second_ratio": "frames/s",
}
"""Figures of an arm over the baseline's: their key in compare.json and the column's head."""


def markdown(result: dict[str, Any]) -> str:
    """Verdict first, then the tables; `result` is what compare.json holds."""
    parts = [
        "# Comparison of arms",
        *(f"**{each}**" for each in verdicts(result)),
        f"Intervals: {_percent(result)}, bootstrap over utterances, {result['samples']} draws; "
        "acoustic scale and word penalty were chosen on dev.",
        "## Accuracy",
        _table(
            ["arm", "frame acc. train", "dev", "WER dev", "S/D/I", "WER test", "S/D/I"],
            [_accuracy_row(arm) for arm in result["arms"]],
        ),
        "## Cost",
        _table(
            ["arm", "workers", "wire bytes a step", "steps", "wall time", "frames/s", "epochs"],
            [_cost_row(arm["training"], arm["name"]) for arm in result["arms"]],
        ),
        f"## Against {result['baseline']}",
        _table(
            ["arm", "WER test difference", "WER dev difference", *RATIOS.values()],
            [_pair_row(pair) for pair in result["pairs"]],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def verdicts(result: dict[str, Any]) -> list[str]:
    """What each pair's difference in test WER says, in a sentence a pair."""
    return [verdict(pair, _percent(result)) for pair in result["pairs"]]


def verdict(pair: dict[str, Any], percent: str) -> str:
    """What the difference in test WER says, in a sentence."""
    test = pair["wer_difference"]["test"]
    how = f"{abs(test['value']):.2f} points {'above' if test['value'] > 0 else 'below'}"
    if not test["value"]:
        how = "equal to"
    if test["low"] > 0:
        meaning = "worse"
    elif test["high"] < 0:
        meaning = "better"
    else:
        meaning = "no difference shown"
    wire = pair["wire_bytes_ratio"]
    sent = ""
    if wire:
        share = f"1/{1 / wire:.1f} of" if wire < 1 else f"{wire:.1f} times"
        sent = f"; it sends {share} the bytes"
    return (
        f"{pair['arm']}: test WER {how} {pair['baseline']}, {percent} interval "
        f"{test['low']:+.2f} to {test['high']:+.2f}: {meaning}{sent}."
    )


def _accuracy_row(arm: dict[str, Any]) -> Row:
    training = arm["training"]
    return [
        arm["name"],
        f"{100 * training['train_frame_accuracy']:.2f} %",
        f"{100 * training['dev_frame_accuracy']:.2f} %",
        *_wer_cells(arm["dev"]),
        *_wer_cells(arm["test"]),
    ]


def _wer_cells(figures: dict[str, Any]) -> Row:
    wer = figures["wer"]
    kinds = "/".join(str(figures[kind]) for kind in ("substitutions", "deletions", "insertions"))
    return [f"{wer['value']:.2f} % ({wer['low']:.2f} to {wer['high']:.2f})", kinds]


def _cost_row(training: dict[str, Any], name: str) -> Row:
    return [
        name,
        str(training["workers"]),
        f"{training['wire_bytes_per_step']:,}",
        f"{training['steps']:,}",
        f"{training['seconds']:.0f} s",
        f"{training['frames_per_second']:,.0f}",
        str(training["epochs"]),
    ]


def _pair_row(pair: dict[str, Any]) -> Row:
    differences = pair["wer_difference"]
    return [
        pair["arm"],
        *(
            f"{each['value']:+.2f} ({each['low']:+.2f} to {each['high']:+.2f})"
            for each in (differences["test"], differences["dev"])
        ),
        *(f"x {pair[key]:.3g}" if pair[key] is not None else "-" for key in RATIOS),
    ]


def _percent(result: dict[str, Any]) -> str:
    return f"{100 * result['confidence']:g} %"


def _table(head: Row, rows: list[Row]) -> str:
    """A Markdown table whose columns line up as plain text."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    padded = (
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)
