"""mem_trace: as many records as the emulator counts, and the addresses that NumPy works out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from luthier_py import Hooks
from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import Buffer
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import Space
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import sample as sample_called
from luthier_py.tools import mem_trace
from luthier_py.tools.mem_trace import MemTrace

LANES = 64
TWO = "read2", "write2", "load2", "store2"  # instructions that access two elements


class Remembering(EmulatorDevice):
    """A device that tells where buffers were."""

    def alloc(self, size: int) -> Buffer:
        buffer = super().alloc(size)
        vars(self).setdefault("buffers", []).append(buffer)
        return buffer


class Kept(MemTrace):
    """Keeps the records."""

    def received(self, channel: Any, launch: Any, records: Any) -> None:
        super().received(channel, launch, records)
        vars(self).setdefault("kept", []).append(records)


def run(name: str, launch: Any = None, **options: Any) -> tuple[Any, Any, Any, Any]:
    """The tool's records and report, the device, and what the emulator counted of the original; nothing changes."""
    chosen = sample_called(name)
    code, launch, tool = chosen.path.read_bytes(), launch or launch_of(chosen), Kept(print_records=False, **options)
    device = Remembering(load(code).target)
    before = run_original(device, code, launch).outputs
    profile = device.profile
    device.buffers.clear()
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert all(ran.outputs[number].tobytes() == data.tobytes() for number, data in before.items())
    assert ran.records["accesses"].kept == ran.records["accesses"].pushed == ran.report["accesses"]
    return np.concatenate(tool.kept), ran.report, device, profile


def test_every_sample_has_the_accesses_that_the_emulator_counts(sample: Any) -> None:
    records, report, device, profile = run(sample.name)
    lanes, elements = Counter[int](), {int(pc): int(n) for pc, n in _elements(records)}
    for record in records:
        lanes[int(record["pc"])] += int(record["lanes"]).bit_count()
    counted = {row["pc"]: row["accesses"] for row in report["sites"] if row["accesses"]}
    memory = {pc: inst for pc, inst in profile.insts.items()
              if inst.op.spaces & (Space.GLOBAL | Space.LDS | Space.SCRATCH)}
    active = {pc: profile.active[pc] for pc in memory if profile.active.get(pc)}
    assert counted == {pc: count * elements[pc] for pc, count in active.items()}
    assert lanes == {pc: profile.lanes[pc] * elements[pc] for pc in active}
    assert report["left_out"] == []
    for pc in active:
        two = any(word in memory[pc].op.mnemonic for word in TWO)
        assert elements[pc] == 1 + two, memory[pc].op.mnemonic


def _elements(records: Any) -> Any:
    for pc in np.unique(records["pc"]):
        yield pc, records["element"][records["pc"] == pc].max() + 1


def big_matmul() -> Any:
    n = 256
    small = launch_of(sample_called("matmul"))
    texts = f"u32={n}", f"in:f32[{n},{n}]=random:1", f"in:f32[{n},{n}]=random:2", f"out:f32[{n},{n}]"
    return replace(small, grid=(n // 16, n // 16, 1), arguments=tuple(map(parse_argument, texts)))


def test_the_addresses_of_the_big_matrix_multiply() -> None:
    """Each wave's addresses, in the order in which the kernel says that it makes them: 33,792 records."""
    n = 256
    records, report, device, _ = run("matmul", big_matmul(), spaces="global")
    assert len(records) == 33_792 == report["accesses"]
    a, b, c = (buffer.address for buffer in device.buffers[-5:] if buffer.size == 4 * n * n)
    lane = np.arange(LANES, dtype=np.uint64)
    steps = np.arange(0, n, 16, dtype=np.uint64)[:, None]
    for group_x in range(n // 16):
        for group_y in range(n // 16):
            here = records[(records["workgroup_x"] == group_x) & (records["workgroup_y"] == group_y)]
            for wave in range(4):
                mine = here[here["wave"] == wave]["address"]
                x, y = lane % 16, 4 * wave + lane // 16
                row, column = 16 * group_y + y, 16 * group_x + x
                loads = np.stack([a + 4 * (row * n + steps + x), b + 4 * ((steps + y) * n + column)], axis=1)
                expected = [*loads.reshape(-1, LANES), c + 4 * (row * n + column)]
                assert _pairs(mine) == _pairs(np.array(expected)), (group_x, group_y, wave)


def _pairs(addresses: Any) -> list[list[tuple[int, ...]]]:
    """What one step loads may come in either order."""
    rows = [tuple(row) for row in addresses.tolist()]
    return [sorted(rows[at : at + 2]) for at in range(0, len(rows), 2)]


IN_HIP = r"""
#include <luthier/hooks.h>
using namespace luthier;
struct Access {
    u64 pc, lanes;
    u32 workgroup_x, workgroup_y, workgroup_z, wave, element;
    lane<u64> address;
};
LUTHIER_HOOK(active, no_fold)
void trace(channel<Access> out, u64 pc, u32 element, u32 x, u32 y, u32 z, u32 wave, lane<u64> address) {
    out.push({pc, active_mask(), x, y, z, wave, element, address});
}
"""


@pytest.mark.parametrize("name", ["matmul", "lds_widths", "histogram", "bitonic_sort"])
@pytest.mark.usefixtures("clang")
def test_a_hook_in_hip_writes_the_same_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_python, told, device, _ = run(name)
    monkeypatch.setattr(mem_trace, "trace", Hooks.from_hip(IN_HIP).trace)
    in_hip, told_by_hip, other, _ = run(name)
    assert told_by_hip == told and len(in_hip) == told["accesses"] > 0
    assert _by_wave(in_hip, other).tobytes() == _by_wave(in_python, device).tobytes()


def _by_wave(records: Any, device: Any) -> Any:
    """The records of a wave in their order, waves come in any; addresses by buffer, which are elsewhere each time."""
    order = [records[name] for name in ("wave", "workgroup_x", "workgroup_y", "workgroup_z")]
    found = records[np.lexsort(order)]
    address = found["address"].copy()
    for number, buffer in enumerate(device.buffers, 1):
        inside = (found["address"] >= buffer.address) & (found["address"] < buffer.address + buffer.size)
        address[inside] += np.uint64(number << 56) - np.uint64(buffer.address)
    found["address"] = address
    return found


def test_spaces_are_chosen() -> None:
    _, report, _, _ = run("matmul", spaces="lds")
    assert report["sites"] and all(row["opcode"].startswith("ds_") for row in report["sites"])
    for wrong in ("texture", "", "global,", "global, lds"):
        with pytest.raises(Invalid, match=f"option spaces={wrong}: choose some of global,lds,scratch"):
            MemTrace(spaces=wrong)


def test_lines_as_nvbit_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    chosen, tool = sample_called("vector_add"), MemTrace()
    code = chosen.path.read_bytes()
    device = EmulatorDevice(load(code).target)
    run_instrumented(device, instrument(code, tool), tool, launch_of(chosen))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 * 32 and all(line.count(" 0x") == 1 + LANES for line in lines)
    assert lines[0].startswith("MEMTRACE: launch 0 - work-group ")
