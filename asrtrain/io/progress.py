"""Progress bars: shown on a terminal, after five seconds, with a rate and the time left."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")

DELAY_SECONDS = 5.0


def progress_bar(description: str, total: int | None, unit: str) -> tqdm:
    """A bar that the caller advances with `update(n)`; use it as a context manager.

    It stays silent when standard error is no terminal, and until the work has taken
    `DELAY_SECONDS`, so that short stages leave no trace.
    """
    return tqdm(
        total=total,
        desc=description,
        unit=f" {unit}",
        unit_scale=total is not None and total > 10_000,
        delay=DELAY_SECONDS,
        disable=not sys.stderr.isatty(),
        dynamic_ncols=True,
        leave=False,
    )


def progress(items: Iterable[T], description: str, total: int | None, unit: str) -> Iterator[T]:
    """Yield `items`, advancing a bar by one for each."""
    with progress_bar(description, total, unit) as bar:
        for item in items:
            yield item
            bar.update(1)
