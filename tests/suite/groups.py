"""How pytest-xdist gives groups of tests (order.py) to its processes.

In: the tests of a run in their order, and what the last nightly run kept of them. Out: each group on one process, one
test after another. Invariant: a test that ends its process has failed, and is not begun again; all others run, on the
process that takes its place.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from suite.kept import Durations
from suite.order import group_of


class Groups(LoadScopeScheduling):
    """Mutable: one run."""

    def __init__(self, config: pytest.Config, log: Any, durations: Durations) -> None:
        config.option.loadscopereorder = False  # the order is order.py's
        super().__init__(config, log)
        self.durations = durations

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid, self.durations)

    def remove_node(self, node: Any) -> str | None:
        """The test that ended its process, if one did: xdist would begin it again, and again."""
        workload = self.assigned_work.pop(node)
        left = [(group, test) for group, tests in workload.items() for test, done in tests.items() if not done]
        if not left:
            return None
        group, ending = left[0]
        workload[group][ending] = True
        self.workqueue.update({group: tests for group, tests in workload.items() if not all(tests.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return ending

    def _reschedule(self, node: Any) -> None:
        """Not before a process has collected; and one that knows of a single test waits for a second one."""
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)
