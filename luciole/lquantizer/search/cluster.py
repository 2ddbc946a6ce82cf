"""Evaluate on a Dask cluster: model and records go there once, a task is under a kilobyte."""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import os
import pickle
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

from luciole.ir.errors import missing_extra
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.runners import Begin, LostError, Outcome, Task, Work, attempted

if TYPE_CHECKING:
    from distributed import Client, Future

_RETRIES = 2
_PATIENCE = 30
"""Seconds that a scheduler, and its first worker, may take to answer."""
_AGE = 1.0
"""Seconds for which a count of threads holds."""
_GONE = (OSError, asyncio.TimeoutError, asyncio.CancelledError, concurrent.futures.CancelledError)
"""Exceptions of Dask where a scheduler does not answer."""
_KEPT: dict[str, Work] = {}
"""The evaluator of tasks in this process, the last one, by the digest of its materials."""


class Cluster:
    """A Dask scheduler's workers, one task for each of their threads.

    Dask does the task of a lost worker again elsewhere. Raises QuantizeError where Dask is not
    installed or nobody answers at the address.
    """

    def __init__(self, address: str, begin: Begin) -> None:
        try:
            self._client = _client(address)
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except (OSError, TimeoutError, ValueError) as error:
            raise QuantizeError(f"{address}: no Dask scheduler with a worker: {error}") from None
        self.address = address
        self._bytes = pickle.dumps(begin, pickle.HIGHEST_PROTOCOL)
        self._digest = hashlib.sha256(self._bytes).hexdigest()
        self._content = self._scattered()
        self._under_way: dict[Future[Outcome], tuple[str, Task]] = {}
        self._tried: Counter[str] = Counter()
        self._ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
        self._counted = (0, 0.0)

    @property
    def capacity(self) -> int:
        """How many threads the workers have: some may come or go, which is seen in a second."""
        count, since = self._counted
        if time.monotonic() - since > _AGE:
            with self._named():
                count = int(sum(self._client.nthreads().values()))  # type: ignore[no-untyped-call]
            self._counted = max(1, count), time.monotonic()
        return self._counted[0]

    def submit(self, key: str, task: Task) -> None:
        """Send a task."""
        keywords = {"pure": False, "retries": _RETRIES}
        future = self._client.submit(
            _work, key, self._digest, self._content, dict(task), **keywords
        )
        self._under_way[future] = key, task
        future.add_done_callback(self._ended.put)  # type: ignore[no-untyped-call]

    def next(self) -> Outcome:
        """Wait for the next task to end. Raises LostError when the scheduler is gone: a task that
        is cancelled then has not failed.
        """
        while True:
            future = self._ended.get()
            key, task = self._under_way.pop(future)
            if future.status == "error":
                return Outcome(key, error=str(future.exception()))  # type: ignore[no-untyped-call]
            if future.status == "finished":
                with suppress(*_GONE):
                    outcome: Outcome = future.result()
                    return outcome
            if self._tried[key] == _RETRIES:
                return Outcome(key, error="its result was lost again and again")
            self._tried[key] += 1
            self._resubmit(key, task)

    def close(self) -> None:
        """Leave the cluster, which goes on."""
        self._client.close(timeout=5)  # type: ignore[no-untyped-call]

    def _resubmit(self, key: str, task: Task) -> None:
        """Send a task whose result is gone, or the model with the last worker that had it."""
        with self._named():
            self._client.wait_for_workers(1, timeout=_PATIENCE)
            if self._content.status != "finished":
                self._content = self._scattered()
        self.submit(key, task)

    def _scattered(self) -> Future[bytes]:
        keywords = {"broadcast": True, "hash": False}
        future: Future[bytes] = self._client.scatter(self._bytes, **keywords)  # type: ignore[no-untyped-call]
        return future

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the scheduler in the error when it does not answer."""
        try:
            yield
        except _GONE:
            raise LostError(
                f"the scheduler at {self.address} is gone; what was finished is kept"
            ) from None


def _client(address: str) -> Client:
    try:
        from dask import config
        from distributed import Client
    except ImportError:
        raise missing_extra("a cluster needs Dask", "cluster") from None
    config.set({"distributed.comm.timeouts.connect": f"{_PATIENCE}s"})
    return Client(address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]  # as above


def _work(key: str, digest: str, content: bytes, task: Task) -> Outcome:
    """Do a task on a worker, which keeps the model and the records."""
    if digest not in _KEPT:
        _KEPT.clear()
        _KEPT[digest] = pickle.loads(content)()
    return attempted(key, _KEPT[digest], task, f"{os.uname().nodename}:{os.getpid()}")
