"""What is said of a tool that observed nothing."""

from __future__ import annotations

import pytest

from luthier_py.features.exec.observation import Observation
from luthier_py.features.settings.levels import HIP, HSA


@pytest.mark.parametrize(("level", "ours", "launches", "told"), [
    (None, False, 0, True), (HIP, False, 0, True),
    (HSA, False, 0, False),    # every launch comes to queues
    (None, True, 0, False),    # the emulator's HIP runtime counts all launches itself
    (HIP, False, 3, False),
])
def test_launches_that_a_tool_before_hip_cannot_see(level: str | None, ours: bool, launches: int, told: bool) -> None:
    found = Observation("instr_count", {}, level, ours, False).hints([{"launches": 0}, {"launches": launches}])
    assert [("RTLD_DEEPBIND" in line and "--level hsa" in line) for line in found] == [True] * told
