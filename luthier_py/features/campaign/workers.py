"""Workers that run a campaign's variations side by side: threads, each of which waits for a process, or a Dask cluster.

In: what runs one variation. Out: Workers, as `engine` has them. Invariant: both are one way, an executor of
`concurrent.futures`, which Dask's client is, too. docs/dependencies.md says why processes here are not Dask's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor, as_completed
from threading import Event

from luthier_py.base.errors import LuthierError
from luthier_py.features.campaign.engine import Ended, ResultT, Variation, VariedT, Workers


def side_by_side(run: Callable[[VariedT, Event], ResultT], jobs: int) -> Workers[VariedT, ResultT]:
    """``jobs`` at a time. ``run`` waits for a process, or for the event: when that is set,
    it kills the process, and its result is discarded."""
    def work(waiting: Sequence[Variation[VariedT, ResultT]]) -> Ended[VariedT, ResultT]:
        over = Event()
        with ThreadPoolExecutor(jobs) as threads:
            try:
                yield from _submit_all(threads, lambda settings: run(settings, over), waiting)
            finally:
                over.set()

    return work


def on_cluster(run: Callable[[VariedT], ResultT], scheduler: str,
               lost: Callable[[BaseException], ResultT]) -> Workers[VariedT, ResultT]:
    """On the workers of a Dask scheduler, which see the same files under the same names. ``lost``: the result of a run
    that ended in an error, such as the death of its machine. LuthierError where there is no Dask, or no scheduler."""
    def work(waiting: Sequence[Variation[VariedT, ResultT]]) -> Ended[VariedT, ResultT]:
        try:
            from distributed import Client
        except ImportError:
            raise LuthierError("--scheduler needs Dask: pip install luthier-py[study,distributed]") from None
        try:
            client = Client(scheduler)
        except (OSError, ValueError) as error:
            raise LuthierError(f"--scheduler {scheduler}: {str(error) or 'no answer'}") from None
        with client:
            yield from _submit_all(client.get_executor(pure=False), run, waiting, lost)

    return work


def _submit_all(executor: Executor, run: Callable[[VariedT], ResultT],
                waiting: Sequence[Variation[VariedT, ResultT]],
                lost: Callable[[BaseException], ResultT] | None = None) -> Ended[VariedT, ResultT]:
    """Without ``lost`` an error of a run is raised."""
    futures = {executor.submit(run, each.settings): each for each in waiting}
    try:
        for future in as_completed(list(futures)):
            each = futures.pop(future)
            error = CancelledError("it was cancelled") if future.cancelled() else future.exception()
            yield each, future.result() if error is None or lost is None else lost(error)
    finally:
        for future in futures:
            future.cancel()
