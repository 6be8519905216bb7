"""Small decodings for tests: references, and a grid of hypotheses."""

import json
from pathlib import Path

from asrtrain.io.tables import write_table
from tests.lang.dictionaries import transcripts


def make_decoding(path: Path, points: dict[tuple[float, float], list[str]]) -> Path:
    """A `decode` output; each point's hypotheses are of utterances s0, s1 and so on."""
    (path / "hyp").mkdir(parents=True)
    grid = []
    for (scale, penalty), sentences in points.items():
        file = f"hyp/{scale:g}_{penalty:g}.txt"
        write_table(path / file, {f"s{n}": text for n, text in enumerate(sentences)})
        grid.append({"scale": scale, "penalty": penalty, "file": file})
    (path / "grid.json").write_text(json.dumps(grid))
    return path


def make_references(path: Path, sentences: list[str]) -> Path:
    """A data directory with these transcripts."""
    return transcripts(path, sentences)
