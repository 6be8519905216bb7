"""Stripes cover every row once, evenly, and rotate over the workers."""

from hypothesis import given
from hypothesis import strategies as st

from asrtrain.onebit.stripes import Stripe, stripes_of

shapes = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 5)), min_size=1, max_size=6)


@given(shapes, st.integers(1, 16))
def test_every_row_has_one_owner_and_stripes_are_even(
    matrices: list[tuple[int, int]], workers: int
) -> None:
    owned = stripes_of(matrices, workers)
    assert len(owned) == workers
    for matrix, (rows, _) in enumerate(matrices):
        mine = [stripes[matrix] for stripes in owned]
        assert all(each.matrix == matrix for each in mine)
        covered = sorted(row for each in mine for row in range(each.begin, each.end))
        assert covered == list(range(rows))
        sizes = [each.end - each.begin for each in mine]
        assert max(sizes) - min(sizes) <= 1


def test_biases_do_not_all_fall_to_one_worker() -> None:
    owned = stripes_of([(1, 8), (1, 8)], 2)
    assert owned == [
        [Stripe(0, 0, 0), Stripe(1, 0, 1)],
        [Stripe(0, 0, 1), Stripe(1, 0, 0)],
    ]


def test_a_number_ties_a_parameter_to_its_owners() -> None:
    """Whichever matrices stand beside it."""
    alone = stripes_of([(5, 8)], 3, numbers=[7])
    among = stripes_of([(2, 8), (5, 8)], 3, numbers=[1, 7])
    for [own], [_, same] in zip(alone, among, strict=True):
        assert (own.begin, own.end) == (same.begin, same.end)
