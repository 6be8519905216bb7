"""Which process this is, as `torchrun` and our own launcher tell it."""

import os


def under_torchrun() -> bool:
    """Whether this process was started by `torchrun` or by `launch`."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def rank() -> int:
    """This process's number, from the environment; 0 when it is alone."""
    return int(os.environ.get("RANK", "0"))


def local_rank() -> int:
    """This process's number on its machine, from the environment; 0 when it is alone."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def processes() -> int:
    """How many processes there are, from the environment; 1 when this one is alone."""
    return int(os.environ.get("WORLD_SIZE", "1"))
