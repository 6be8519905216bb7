"""Where log lines go: the terminal, and the log of the stage that is being made."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def log_to_terminal() -> None:
    """Send the log to standard error, message only."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)


@contextmanager
def log_file(path: Path) -> Iterator[None]:
    """Append asrtrain's log lines, with times, to `path` as well."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("asrtrain")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
