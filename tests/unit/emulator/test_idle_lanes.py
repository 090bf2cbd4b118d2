"""Lanes far outside of LDS, as hand-written code makes them idle: what they do is right, said once, and no finding
unless what they read decides something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from emulated import ISA, KERNARG_BYTES, LANES, code_object
from test_checks import END, PLACE, START, WAIT, made, run

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import Checks, FindingKind
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.watching.findings import LaunchReport
from luthier_py.host.worker.device.findings import reporter
from luthier_py.isa import vgpr

IDLE = [ISA.parse(text).raw for text in (
    "v_mov_b32_e32 v5, 0xf00000", "s_movk_i32 s10, 0x80", "v_cmp_gt_u32_e32 vcc, s10, v2",
    "v_cndmask_b32_e32 v5, v5, v2, vcc")]
READ, STORE = made("ds_read_b32", vgpr(4), vgpr(5)), made("global_store_dword", vgpr(2), vgpr(4), PLACE)
WRITE = made("ds_write_b32", vgpr(5), vgpr(2))


def reports(rows: Sequence[Any], checks: Checks, times: int) -> list[LaunchReport]:
    found: list[LaunchReport] = []
    device = EmulatorDevice(ISA.target, options=LaunchOptions(checks=checks), report=found.append)
    buffer = device.alloc(1024)
    module = device.load(code_object({"k": [*START, *rows]}, ("k",), lds_bytes=256))
    for _ in range(times):
        kernarg = buffer.address.to_bytes(8, "little").ljust(KERNARG_BYTES, b"\0")
        device.launch(module.kernel("k"), (1, 1, 1), (LANES, 1, 1), kernarg)
    return found


@pytest.mark.parametrize("checks", [Checks.NONE, Checks.RACES, Checks.BOUNDS])
def test_it_is_noted(checks: Checks) -> None:
    """Of each launch, also of those that native code runs to their end."""
    found = reports([*IDLE, WRITE, READ, WAIT, END], checks, 2)
    assert [report.looked_at for report in found] == [bool(checks)] * 2
    for report in found:
        (note,) = report.notes
        assert "`ds_read_b32 v4, v5`: lanes are outside of their work-group's 256 bytes of LDS" in note
        assert not report.findings
    found = reports([WAIT, END], checks, 1)
    assert not any(report.notes for report in found)


def test_it_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    tell = reporter({})
    for kernel in ("_Z1av", "b", "b"):
        tell(LaunchReport(kernel, [], notes=("pc 0x10: lanes are outside",), looked_at=False))
    assert capfd.readouterr().err == "luthier: kernel a(): pc 0x10: lanes are outside\n"


def test_what_they_read_is_found_where_it_is_used() -> None:
    rows = [*IDLE, WRITE, READ, WAIT]
    assert not run([*rows, ("v_add_u32", vgpr(4), 1, vgpr(4)), END], Checks.BOUNDS | Checks.INIT, lds=256).findings
    done = run([*rows, STORE, END], Checks.BOUNDS | Checks.INIT, lds=256)
    (found,) = done.findings
    assert (found.kind, found.who.lane) == (FindingKind.REGISTER, 32)
    assert found.what == "v4 was never written, or read far outside of LDS, and is stored to memory"
    assert done.data[:64] == (*range(0, 128, 4), *[0] * 32)


@pytest.mark.parametrize(("distance", "kinds"), [
    (256, [FindingKind.BOUNDS]), ((1 << 20) + 252, [FindingKind.BOUNDS]), ((1 << 20) + 256, []),
    (-4, [FindingKind.BOUNDS]), (4 - (1 << 20), [FindingKind.BOUNDS]), (-(1 << 20), []),
])  # fmt: skip
def test_what_is_near_is_a_mistake(distance: int, kinds: list[FindingKind]) -> None:
    rows = [("v_mov_b32", vgpr(5), distance & 0xFFFFFFFF), READ, WAIT, END]
    assert run(rows, Checks.BOUNDS, lds=256).kinds == kinds
