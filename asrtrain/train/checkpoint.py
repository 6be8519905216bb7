"""Checkpoints of an unfinished training: all that a later process needs to take the same steps.

A checkpoint is a folder `step-N` with a folder `shard-M` for each shard of the model (there is one,
unless parallel.model says otherwise). Its files are of plain tensors and plain types:

    shared.pt           what is the same in every process, and where the run stands
    worker-K.pt         residuals of worker K, and what it has counted in this epoch
    owner-P-of-W.pt     optimizer state and residuals of the stripes that process P owned

Every process writes its own files. Whoever goes on, in however many processes, reads the workers it
runs and cuts its own stripes out of the owners' files. The folder is renamed into place when all of
its files are there.
"""

import logging
import os
import pickle
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from asrtrain.io.errors import UserError
from asrtrain.onebit.exchange import StripedExchange
from asrtrain.onebit.stripes import Stripe
from asrtrain.train.loop import TrainerState
from asrtrain.train.parallel import Grid
from asrtrain.train.totals import Totals

log = logging.getLogger(__name__)


@dataclass
class RunState:
    """A run as one process sees it."""

    run: dict[str, Any]
    """Where it stands: plain types, the same in every process."""
    states: dict[str, TrainerState]
    """`now`, and `before`: what a rejected epoch goes back to."""
    totals: list[Totals]
    """Of this epoch so far, of each worker of this process."""


class Checkpoints:
    """The checkpoints in `folder`, of which the newest `keep` are kept."""

    def __init__(self, folder: Path, keep: int, exchange: StripedExchange, grid: Grid) -> None:
        self._folder, self._keep, self._exchange, self._grid = folder, keep, exchange, grid
        self._shard = f"shard-{grid.shards.rank}"

    def save(self, step: int, state: RunState) -> None:
        """Write checkpoint `step`; a collective."""
        final = self._folder / f"step-{step:08d}"
        partial = self._folder / f".{final.name}"
        leader = self._grid.world.rank == 0
        if leader:
            shutil.rmtree(partial, ignore_errors=True)
            for shard in range(self._grid.shards.size):
                (partial / f"shard-{shard}").mkdir(parents=True)
        self._grid.barrier()
        self._write_own_files(partial / self._shard, state)
        self._grid.barrier()
        if leader:
            shutil.rmtree(final, ignore_errors=True)
            partial.rename(final)
            for old in self._complete()[: -self._keep]:
                shutil.rmtree(old)

    def load(self, fresh: TrainerState) -> RunState | None:
        """The newest checkpoint, or None if there is none.

        `fresh` is the state of a trainer that has taken no step: what a worker starts from whose
        residuals cannot be had, because the checkpoint is of another number of workers.
        """
        complete = self._complete()
        if not complete:
            return None
        return _Reader(complete[-1] / self._shard, self._exchange).read(fresh)

    def _complete(self) -> list[Path]:
        return sorted(self._folder.glob("step-*"))

    def _write_own_files(self, folder: Path, state: RunState) -> None:
        exchange, transport = self._exchange, self._exchange.transport
        if transport.rank == 0:
            shared = {name: each.shared for name, each in state.states.items()}
            owners = transport.size
            _write(
                folder / "shared.pt",
                {"run": state.run, "workers": exchange.workers, "owners": owners, "states": shared},
            )
        for place, worker in enumerate(exchange.local_workers):
            own = {name: each.workers[place] for name, each in state.states.items()}
            totals = state.totals[place].values()
            _write(_worker_file(folder, worker), {"totals": totals, "states": own})
        _write(
            _owner_file(folder, transport.rank, transport.size),
            {
                "stripes": [[each.begin, each.end] for each in exchange.owned],
                "states": {name: each.owner for name, each in state.states.items()},
            },
        )


class _Reader:
    """Reads one checkpoint for this process."""

    def __init__(self, folder: Path, exchange: StripedExchange) -> None:
        self._folder, self._exchange = folder, exchange
        self._shared = _read(folder / "shared.pt")

    def read(self, fresh: TrainerState) -> RunState:
        saved, wanted = self._shared["workers"], self._exchange.workers
        if saved != wanted:
            log.warning(
                "%s is of %d workers, now there are %d: their residuals start from zero",
                self._folder.parent.name,
                saved,
                wanted,
            )
        local = self._exchange.local_workers
        numbers = local if saved == wanted else range(saved)
        workers = [_read(_worker_file(self._folder, number)) for number in numbers]
        totals = [Totals(*each["totals"]) for each in workers]
        states = {
            name: TrainerState(
                shared,
                [each["states"][name] for each in workers] if saved == wanted else fresh.workers,
                self._owner(name),
            )
            for name, shared in self._shared["states"].items()
        }
        if saved != wanted:
            totals = self._all_in_the_first_worker(totals)
        return RunState(self._shared["run"], states, totals)

    def _all_in_the_first_worker(self, totals: Sequence[Totals]) -> list[Totals]:
        sums = [sum(column) for column in zip(*(each.values() for each in totals), strict=True)]
        local = self._exchange.local_workers
        return [Totals(*sums) if worker == 0 else Totals() for worker in local]

    def _owner(self, name: str) -> dict[str, Any]:
        """This process's stripes, cut out of what the owners of then have left."""
        owners = self._shared["owners"]
        files = [_read(_owner_file(self._folder, rank, owners)) for rank in range(owners)]
        stripes = [each["stripes"] for each in files]
        return _recut([each["states"][name] for each in files], stripes, self._exchange.owned)


def _recut(held: list[Any], stripes: list[Any], owned: Sequence[Stripe]) -> Any:
    """One owner's state out of the states of all, which have the same nested dicts and lists.

    Lists hold one item a parameter: a stripe's tensor, or a count that the owners share.
    """
    if isinstance(held[0], dict):
        return {key: _recut([each[key] for each in held], stripes, owned) for key in held[0]}
    if not held[0]:
        return []
    if not isinstance(held[0][0], Tensor):
        return [max(counts) for counts in zip(*held, strict=True)]
    return [
        _cut([each[own.matrix] for each in held], [each[own.matrix] for each in stripes], own)
        for own in owned
    ]


def _cut(parts: list[Tensor], places: list[list[int]], own: Stripe) -> Tensor:
    if parts[0].dim() < 2:  # a codec that keeps no residual
        return parts[0]
    ordered = sorted(zip(places, parts, strict=True), key=lambda each: each[0])
    return torch.cat([part for _, part in ordered])[own.begin : own.end].clone()


def _worker_file(folder: Path, worker: int) -> Path:
    return folder / f"worker-{worker:03d}.pt"


def _owner_file(folder: Path, rank: int, size: int) -> Path:
    return folder / f"owner-{rank}-of-{size}.pt"


def _write(path: Path, held: dict[str, Any]) -> None:
    with open(path, "wb") as file:
        torch.save(held, file)
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> dict[str, Any]:
    try:
        held: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu", mmap=True)
    except (OSError, pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise UserError(
            f"{path}: cannot be read ({type(error).__name__}); remove {path.parent.parent} to go "
            "on from the checkpoint before it"
        ) from error
    return held
