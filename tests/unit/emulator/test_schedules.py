"""Waves and work-groups at random: another order for each seed, the same again for the same, right results in all."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from emulated import ISA, KERNARG_BYTES, LANES, code_object
from launching import run_sample

from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import ALL, Checks
from luthier_py.emulator.options.clock_kind import ClockKind
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.options.schedule import Schedule, parse_schedule
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_original
from luthier_py.isa import target
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.registers import EXEC, VCC, sgpr, vgpr
from luthier_py.samples import sample

LIST = sgpr(8, 2)
START = [("s_load_dwordx2", LIST, sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_mov_b32", vgpr(2), 0)]


def appending() -> list[object]:
    """Each wave appends its number, three times, to a list whose length is its first word."""
    append = [("v_mov_b32", vgpr(3), 4), ISA.make("global_atomic_add", vgpr(1), vgpr(2), vgpr(3), LIST, glc=1).raw,
              ("s_waitcnt", 0), ISA.make("global_store_dword", vgpr(1), vgpr(5), LIST, offset=4).raw]
    return [*START, ("v_lshrrev_b32", vgpr(5), 6, vgpr(0)), ("s_lshl_b32", sgpr(10), sgpr(6), 4),
            ("v_or_b32", vgpr(5), sgpr(10), vgpr(5)), ("s_mov_b64", sgpr(EXEC, 2), 1),
            *append, ("s_barrier",), *append, *append, ("s_endpgm",)]


def order(schedule: Schedule | None, groups: int = 3, waves: int = 4) -> Sequence[int]:
    device = EmulatorDevice(ISA.target, options=LaunchOptions(schedule=schedule))
    words = 1 + 3 * groups * waves
    buffer = device.alloc(4 * words)
    device.write(buffer.address, bytes(4 * words))
    module = device.load(code_object({"k": appending()}))
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    device.launch(module.kernel("k"), (groups, 1, 1), (LANES * waves, 1, 1), kernarg)
    length, *found = struct.unpack(f"<{words}I", device.read(buffer.address, buffer.size))
    assert length == 4 * (words - 1)
    return found


def test_each_seed_has_its_order_and_keeps_it():
    orders = [order(Schedule(seed)) for seed in range(8)]
    assert len({tuple(each) for each in orders}) == 8
    assert orders == [order(Schedule(seed)) for seed in range(8)]
    for found in orders:
        assert sorted(found) == sorted(order(None))
        for group in range(3):  # nobody appends a second time before all have appended once
            of_group = [wave & 15 for wave in found if wave >> 4 == group]
            assert sorted(of_group[:4]) == [0, 1, 2, 3]


def test_work_groups_are_woven():
    woven = 0
    for seed in range(8):
        groups = [wave >> 4 for wave in order(Schedule(seed))]
        woven += sum(one != other for one, other in zip(groups, groups[1:], strict=False)) > 2
    assert woven >= 6
    assert [wave >> 4 for wave in order(None)] == [0] * 12 + [1] * 12 + [2] * 12


@pytest.mark.parametrize("options", [
    LaunchOptions(schedule=Schedule(1)), LaunchOptions(schedule=Schedule(2)), LaunchOptions(checks=ALL),
    LaunchOptions(schedule=Schedule(3), checks=ALL),
], ids=["seed 1", "seed 2", "checked", "both"])
@pytest.mark.parametrize("name", ["histogram", "bitonic_sort", "reduce", "matmul", "scratch", "function_pointers"])
def test_samples_are_right_by_lot_and_watched(name, options):
    one = sample(name)
    code = one.path.read_bytes()
    device = EmulatorDevice(load(code).target, options=options)
    ran = run_original(device, code, launch_of(one))
    bare = EmulatorDevice(load(code).target)
    expected = run_original(bare, code, launch_of(one))
    for number, data in ran.outputs.items():
        np.testing.assert_array_equal(data, expected.outputs[number])
    assert device.profile.counts == bare.profile.counts


def test_what_stands_still_is_found_by_lot():
    """Lane 0 of every wave waits for a word that nobody writes. It is found before long."""
    load_word: Inst = ISA.make("global_load_dword", vgpr(1), vgpr(2), LIST)
    rows = [*START, "again:", load_word.raw, ("s_waitcnt", 0), ("v_cmp_eq_u32", sgpr(VCC, 2), 0, vgpr(1)),
            ("s_cbranch_vccnz", "again"), ("s_endpgm",)]
    device = EmulatorDevice(ISA.target, options=LaunchOptions(schedule=Schedule(3), instruction_limit=10_000_000))
    buffer = device.alloc(4)
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    with pytest.raises(DeviceError, match="deadlock"):
        device.launch(device.load(code_object({"k": rows})).kernel("k"), (2, 1, 1), (LANES, 1, 1), kernarg)


def test_schedules_as_text():
    assert parse_schedule("seed=16") == parse_schedule("16") == Schedule(16) and str(Schedule(16)) == "seed=16"
    assert parse_schedule("") is None is parse_schedule("default")
    for wrong in ("seven", "seed=", "seed=-1", "lots=1", f"seed={1 << 64}"):
        with pytest.raises(Invalid, match="seed=N"):
            parse_schedule(wrong)


@pytest.mark.parametrize("checks", [Checks.NONE, ALL])
def test_the_cycle_model_follows_any_order(checks):
    """Every wave begins and ends once, and a barrier holds all of a work-group, whatever the turns."""
    chosen = sample("reduce")
    found = []
    for schedule in (None, Schedule(1), Schedule(1), Schedule(2)):
        device = EmulatorDevice(target("gfx90a"), options=LaunchOptions(
            clock=ClockKind.MODEL, schedule=schedule, checks=checks))
        assert run_sample(device, chosen)
        assert device.profile is not None and device.profile.cycles is not None and not device.findings
        cycles = device.profile.cycles
        assert (cycles.ends > cycles.begins).all() and (cycles.waves > 0).all()
        found.append(cycles.total)
    assert found[1] == found[2]
