"""Which worker this process is, as `torchrun` and our own launcher tell it."""

import os


def under_torchrun() -> bool:
    """Whether this process is a worker already, started by `torchrun` or by `launch`."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def rank() -> int:
    """This worker's number, from the environment; 0 when it is alone."""
    return int(os.environ.get("RANK", "0"))


def workers() -> int:
    """How many workers there are, from the environment; 1 when this one is alone."""
    return int(os.environ.get("WORLD_SIZE", "1"))
