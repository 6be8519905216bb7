"""Who owns which rows: every parameter matrix is cut by rows into one stripe a worker.

The owner of a stripe sums its sub-gradients and holds its optimizer state, which therefore exists
once over all workers (Seide et al. 2014, section 3.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Stripe:
    """Rows `begin` to `end` (exclusive) of the parameter matrix number `matrix`."""

    matrix: int
    begin: int
    end: int


def stripes_of(
    shapes: Sequence[tuple[int, int]], workers: int, numbers: Sequence[int] | None = None
) -> list[list[Stripe]]:
    """For each worker, its stripe of every matrix; `shapes` are (rows, columns).

    Stripes of a matrix differ by one row at most; a matrix of fewer rows than workers leaves some
    empty. Who gets the larger ones rotates with the matrix's number, so that the one-row matrices
    (biases) do not all fall to the same worker. `numbers`, by default 0, 1, ..., tie a parameter to
    its owners wherever it stands among the matrices.
    """
    owned: list[list[Stripe]] = [[] for _ in range(workers)]
    for matrix, (rows, _) in enumerate(shapes):
        number = matrix if numbers is None else numbers[matrix]
        for part in range(workers):
            begin, end = rows * part // workers, rows * (part + 1) // workers
            owned[(part + number) % workers].append(Stripe(matrix, begin, end))
    return owned
