"""Evaluate on a Dask cluster: model and records go there once, a task is under a kilobyte."""

from __future__ import annotations

import hashlib
import os
import pickle
from typing import TYPE_CHECKING

from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.runners import Begin, LostError, Outcome, Task, Work, attempted

if TYPE_CHECKING:
    from distributed import Client, Future

_RETRIES = 2
_PATIENCE = 30
"""Seconds that a scheduler, and its first worker, may take to answer."""
_KEPT: dict[str, Work] = {}
"""What evaluates tasks in this process, by the digest of what it was made from: the last one."""


class Cluster:
    """A Dask scheduler's workers, one task for each of their threads.

    Dask does the task of a lost worker again elsewhere. Raises QuantizeError where Dask is not
    installed or nobody answers at the address.
    """

    def __init__(self, address: str, begin: Begin) -> None:
        try:
            self._client = _client(address)
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except (OSError, TimeoutError) as error:
            raise QuantizeError(f"{address}: no Dask scheduler with a worker: {error}") from None
        self.address = address
        content = pickle.dumps(begin, pickle.HIGHEST_PROTOCOL)
        self._digest = hashlib.sha256(content).hexdigest()
        self._content = self._client.scatter(content, broadcast=True, hash=False)  # type: ignore[no-untyped-call]
        self._under_way: dict[Future[Outcome], str] = {}

    @property
    def capacity(self) -> int:
        """How many threads the workers have by now: some may come or go."""
        return max(1, int(sum(self._client.nthreads().values())))  # type: ignore[no-untyped-call]

    def submit(self, key: str, task: Task) -> None:
        """Send a task."""
        how = {"pure": False, "retries": _RETRIES}
        future = self._client.submit(_work, key, self._digest, self._content, dict(task), **how)
        self._under_way[future] = key

    def next(self) -> Outcome:
        """Wait for the next task to end. Raises LostError when the scheduler is gone: a task that
        is cancelled then has not failed.
        """
        from distributed import wait

        with self._client.as_current():
            ended = wait(list(self._under_way), return_when="FIRST_COMPLETED")  # type: ignore[no-untyped-call]  # Dask has no types here
        future = next(iter(ended.done))
        key = self._under_way.pop(future)
        if future.status == "finished":
            outcome: Outcome = future.result()
            return outcome
        if future.status == "error":
            return Outcome(key, error=str(future.exception()))
        raise LostError(f"the scheduler at {self.address} is gone; what was finished is kept")

    def close(self) -> None:
        """Leave the cluster, which goes on."""
        self._client.close(timeout=5)  # type: ignore[no-untyped-call]


def _client(address: str) -> Client:
    try:
        from dask import config
        from distributed import Client
    except ImportError:
        raise QuantizeError("a cluster needs Dask: pip install luciole[cluster]") from None
    config.set({"distributed.comm.timeouts.connect": f"{_PATIENCE}s"})
    return Client(address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]  # as above


def _work(key: str, digest: str, content: bytes, task: Task) -> Outcome:
    """Do a task on a worker, which keeps the model and the records."""
    if digest not in _KEPT:
        _KEPT.clear()
        _KEPT[digest] = pickle.loads(content)()
    return attempted(key, _KEPT[digest], task, f"{os.uname().nodename}:{os.getpid()}")
