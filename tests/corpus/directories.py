"""A small data directory for tests."""

from pathlib import Path

from asrtrain.corpus.datadir import DataDirectory


def small_directory(path: Path, speakers: int = 4, utterances: int = 3) -> DataDirectory:
    """`speakers` with `utterances` each; utterance ids begin with the speaker's."""
    ids = {f"s{s}-{u}": f"s{s}" for s in range(speakers) for u in range(utterances)}
    directory = DataDirectory(
        path,
        {each: ["HELLO", each.upper()] for each in ids},
        ids,
        "wav.scp",
        {each: f"{path}/{each}.wav" for each in ids},
    )
    path.mkdir(parents=True, exist_ok=True)
    directory.write(path)
    return directory
