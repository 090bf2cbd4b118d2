"""Work-groups and waves that wait: for what comes they get there, what cannot come is a deadlock, and told as one."""

from __future__ import annotations

import re
import struct
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from emulated import ISA, KERNARG_BYTES, LANES, code_object
from launching import compile_hip, launch

from luthier_py.base.errors import DeviceError, Invalid, TimeLimit
from luthier_py.emulator import EmulatorDevice, LaunchOptions
from luthier_py.emulator.devices.module import HostedCode
from luthier_py.emulator.launches.dispatch import LaunchLimits
from luthier_py.isa import EXEC, M0, VCC, sgpr, vgpr

FLAG, LOADED = sgpr(0, 2), sgpr(8)
START = [("s_load_dwordx2", FLAG, sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_mov_b32", vgpr(2), 0),
         ("v_mov_b32", vgpr(3), 1)]
WAIT = ["again:", ISA.make("global_load_dword", vgpr(1), vgpr(2), FLAG).raw, ("s_waitcnt", 0),
        ("v_readfirstlane_b32", LOADED, vgpr(1)), ("s_cmp_eq_u32", LOADED, 0), ("s_cbranch_scc1", "again")]
SET = ISA.make("global_store_dword", vgpr(2), vgpr(3), FLAG).raw
END = ("s_endpgm",)
TIMES = 10  # as long as it takes a launch may take, where nothing else should keep it from its end


def run(data: bytes, groups: int, waves: int = 1, words: int = 1, **options: Any) -> Sequence[int]:
    """What the buffer of ``words`` zeros holds afterwards."""
    device = EmulatorDevice(ISA.target, **options)
    buffer = device.alloc(4 * words)
    device.write(buffer.address, bytes(4 * words))
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    device.launch(device.load(data).kernel("k"), (groups, 1, 1), (LANES * waves, 1, 1), kernarg)
    return struct.unpack(f"<{words}I", device.read(buffer.address, buffer.size))


def wait_for_last(groups: int) -> list[Any]:
    """The last work-group sets the flag for which all others wait."""
    return [*START, ("s_cmp_eq_u32", sgpr(6), groups - 1), ("s_cbranch_scc1", "last"), *WAIT, END, "last:", SET, END]


@pytest.mark.parametrize("threads, resources, limit, words", [
    (1, {"lds_bytes": 32768}, 32, "32768 of 65536 bytes of LDS"),
    (3, {"lds_bytes": 32768}, 32, "32768 of 65536 bytes of LDS"),
    (3, {"vgprs": 256, "agprs": 256}, 64, "512 VGPRs"),
    (1, {}, 512, "32 waves"),
])
def test_as_many_wait_for_the_last_as_the_device_holds(threads, resources, limit, words):
    assert run(code_object({"k": wait_for_last(limit)}, **resources), limit, threads=threads) == (1,)
    with pytest.raises(DeviceError) as caught:
        run(code_object({"k": wait_for_last(limit + 1)}, **resources), limit + 1, threads=threads)
    message = str(caught.value)
    assert f"deadlock: the {limit} work-groups that the device can hold" in message and words in message
    assert f"1 of {limit + 1} work-groups have not started" in message
    assert f"{limit} waves (wave 0 of work-group 0 first) at pc 0x" in message and len(message) < 1000


def test_more_than_fit_wait_for_the_one_before():
    """Each is set free in turn; 40 of 32 places."""
    rows = [*START, ("s_lshl_b32", sgpr(9), sgpr(6), 2), ("v_mov_b32", vgpr(4), sgpr(9)), ("s_cmp_eq_u32", sgpr(6), 0),
            ("s_cbranch_scc1", "free"), "again:", ISA.make("global_load_dword", vgpr(1), vgpr(4), FLAG, offset=-4).raw,
            ("v_readfirstlane_b32", LOADED, vgpr(1)), ("s_cmp_eq_u32", LOADED, 0), ("s_cbranch_scc1", "again"), "free:",
            ISA.make("global_store_dword", vgpr(4), vgpr(3), FLAG).raw, END]
    data = code_object({"k": rows}, lds_bytes=32768)
    assert run(data, 40, words=40) == (1,) * 40


def test_a_lock_that_each_takes_in_turn():
    """Spinning on a lock changes no memory until it is free, and then it does."""
    taken = ISA.make("global_atomic_cmpswap", vgpr(1), vgpr(2), vgpr(4, 2), FLAG, glc=1).raw
    rows = [*START, ("s_mov_b64", sgpr(EXEC, 2), 1), ("v_mov_b32", vgpr(4), 1), ("v_mov_b32", vgpr(5), 0),
            "again:", taken,
            ("v_readfirstlane_b32", LOADED, vgpr(1)), ("s_cmp_lg_u32", LOADED, 0), ("s_cbranch_scc1", "again"),
            ("s_movk_i32", sgpr(9), 3000), "work:", ("s_sub_u32", sgpr(9), sgpr(9), 1), ("s_cmp_lg_u32", sgpr(9), 0),
            ("s_cbranch_scc1", "work"), ISA.make("global_load_dword", vgpr(6), vgpr(2), FLAG, offset=4).raw,
            ("v_add_u32", vgpr(6), 1, vgpr(6)),
            ISA.make("global_store_dword", vgpr(2), vgpr(6), FLAG, offset=4).raw,
            ISA.make("global_store_dword", vgpr(2), vgpr(2), FLAG).raw, END]
    for threads in (1, 3):
        assert run(code_object({"k": rows}), 100, waves=2, words=2, threads=threads) == (0, 200)


def test_a_lock_that_is_never_given_back():
    taken = ISA.make("global_atomic_swap", vgpr(1), vgpr(2), vgpr(3), FLAG, glc=1).raw
    rows = [*START, "again:", taken, ("v_readfirstlane_b32", LOADED, vgpr(1)), ("s_cmp_lg_u32", LOADED, 0),
            ("s_cbranch_scc1", "again"), END]
    with pytest.raises(DeviceError, match=r"deadlock: every wave goes round.*11 waves .*global_atomic_swap"):
        run(code_object({"k": rows}), 4, waves=3)


def test_nested_loops_that_come_round_after_many_turns():
    """The wait has a loop of 13 rounds in it, so that turns end at different places of it."""
    rows = [*START, "again:", ("s_mov_b32", sgpr(9), 13), "pause:", ("s_sub_u32", sgpr(9), sgpr(9), 1),
            ("s_cmp_lg_u32", sgpr(9), 0), ("s_cbranch_scc1", "pause"), *WAIT[1:], END]
    with pytest.raises(DeviceError, match="deadlock: every wave"):
        run(code_object({"k": rows}), 1)


def test_a_barrier_that_some_waves_never_come_to():
    """Wave 0 waits at the barrier, wave 1 for what comes behind it; wave 2 has ended, which is no hindrance."""
    rows = [*START, ("v_readfirstlane_b32", sgpr(10), vgpr(0)), ("s_cmp_ge_u32", sgpr(10), 128),
            ("s_cbranch_scc1", "end"), ("s_cmp_ge_u32", sgpr(10), 64), ("s_cbranch_scc1", "again"), ("s_barrier",), SET,
            ("s_branch", "end"), *WAIT, "end:", END]
    with pytest.raises(DeviceError) as caught:
        run(code_object({"k": rows}), 1, waves=3)
    message = str(caught.value)
    assert "deadlock at a barrier" in message and caught.value.where.kernel == "k"
    assert re.search("wave 0 of work-group 0 at pc 0x[0-9a-f]+ `s_barrier", message)
    assert re.search("wave 1 of work-group 0 at pc 0x[0-9a-f]+ `global_load_dword", message)
    assert "1 waves of these work-groups have ended" in message


def test_a_grid_barrier_of_more_work_groups_than_are_resident():
    def data(members):
        return code_object({"k": [("v_mov_b32", vgpr(2), members - 1), ("s_mov_b32", sgpr(M0), 0),
                                  ISA.make("ds_gws_init", vgpr(2), gds=1).raw,
                                  ISA.make("ds_gws_barrier", vgpr(2), gds=1).raw, END]}, lds_bytes=32768)

    run(data(32), 32)
    with pytest.raises(DeviceError, match=r"deadlock: the 32 work-groups.*`ds_gws_barrier"):
        run(data(33), 33)
    with pytest.raises(DeviceError, match="deadlock at a barrier"):
        run(data(33), 32)


def test_waiting_for_the_host_is_no_deadlock_where_it_may_write():
    """The host sets the flag when the kernel has said, in the word behind it, that it runs."""
    device = EmulatorDevice(ISA.target, others_write=True)
    buffer = device.alloc(8)
    device.write(buffer.address, bytes(8))
    rows = [*START, ISA.make("global_store_dword", vgpr(2), vgpr(3), FLAG, offset=4).raw, *WAIT, END]

    def answer():
        while device.read(buffer.address + 4, 4) == bytes(4):
            pass
        device.write(buffer.address, b"\1\0\0\0")

    host = threading.Thread(target=answer, daemon=True)
    host.start()
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    device.launch(device.load(code_object({"k": rows})).kernel("k"), (1, 1, 1), (LANES, 1, 1), kernarg)
    host.join()


LOCK = [*START, ("v_mov_b32", vgpr(4), 1), ("v_mov_b32", vgpr(5), 0)]
TAKE = ISA.make("global_atomic_cmpswap", vgpr(1), vgpr(2), vgpr(4, 2), FLAG, glc=1).raw
UNTIL_TAKEN = [("s_waitcnt", 0), ("v_cmp_ne_u32", sgpr(VCC, 2), 0, vgpr(1)),
               ("s_and_b64", sgpr(EXEC, 2), sgpr(EXEC, 2), sgpr(VCC, 2)), ("s_cbranch_execnz", "again")]
ALL = ("s_mov_b64", sgpr(EXEC, 2), -1)
IN_LDS = [ISA.make("ds_cmpst_rtn_b32", vgpr(1), vgpr(2), vgpr(5), vgpr(4)).raw]
LOAD = ISA.make("global_load_dword", vgpr(1), vgpr(2), FLAG).raw
FIRST_LANE = ("s_mov_b64", sgpr(EXEC, 2), 1)
WAIT_FOR_FLAG = [LOAD, ("s_waitcnt", 0), ("v_cmp_eq_u32", sgpr(VCC, 2), 0, vgpr(1)), ("s_cbranch_vccnz", "again")]
MASKED = [
    ([*LOCK, "again:", TAKE, *UNTIL_TAKEN, ALL, SET, END], "lanes 1-63 are", "lane 0 is"),
    ([*LOCK, ISA.make("ds_write_b32", vgpr(2), vgpr(2)).raw, "again:", *IN_LDS, *UNTIL_TAKEN, ALL, SET, END],
     "lanes 1-63 are", "lane 0 is"),
    ([*LOCK, FIRST_LANE, "again:", *WAIT_FOR_FLAG, ALL, SET, END], "lane 0 is", "lanes 1-63 are"),
]


@pytest.mark.parametrize("rows, going, masked", MASKED)
def test_lanes_that_wait_for_lanes_of_their_wave(rows: list[Any], going: str, masked: str) -> None:
    data, why = code_object({"k": rows}), "lanes of a wave wait for lanes of the same wave"
    with pytest.raises(DeviceError, match=f"^deadlock: {why}") as caught:
        run(data, 1)
    told = r"its (.*) in a loop, until whose end (.*) masked off, to go on at pc \w+ `(\w+)"
    said = re.search(told, str(caught.value))
    assert said is not None and said.groups() == (going, masked, "global_store_dword")
    device = EmulatorDevice(ISA.target)
    device.limits = LaunchLimits(instruction_limit=1 << 20, others_write=True)
    buffer = device.alloc(4)
    device.write(buffer.address, bytes(4))
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    with pytest.raises(TimeLimit, match=f"no end within .*: {why}.*its {going} in a loop"):
        device.launch(device.load(data).kernel("k"), (1, 1, 1), (LANES, 1, 1), kernarg)


@pytest.mark.parametrize("behind", [[ALL, END], [("s_trap", 2)]], ids=["end", "trap"])  # behind which nothing is read
def test_lanes_that_can_write_nothing_are_not_waited_for(behind: list[Any]) -> None:
    """What is masked off has nothing to do but to end."""
    with pytest.raises(DeviceError, match="^deadlock: every wave goes round in a circle") as caught:
        run(code_object({"k": [*LOCK, FIRST_LANE, "again:", *WAIT_FOR_FLAG, *behind]}), 1)
    assert "masked off" not in str(caught.value)


def test_work_groups_that_cannot_start_end_a_program_that_does_not_write():
    """Not at once where others may; the patience of this device is none."""
    device = EmulatorDevice(ISA.target)
    device.limits = LaunchLimits(others_write=True, standstill=0.0)
    buffer = device.alloc(4)
    device.write(buffer.address, bytes(4))
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    handle = device.load(code_object({"k": wait_for_last(33)}, lds_bytes=32768)).kernel("k")
    with pytest.raises(DeviceError, match="deadlock: the 32 work-groups that the device can hold"):
        device.launch(handle, (33, 1, 1), (LANES, 1, 1), kernarg)


def test_waiting_for_a_time_is_no_deadlock():
    """Every round looks the same but for the clock, of which nothing is kept."""
    rows = [*START, ("s_memtime", sgpr(10, 2)), ("s_waitcnt", 0), ("s_add_u32", sgpr(10), sgpr(10), 1 << 21),
            ("s_addc_u32", sgpr(11), sgpr(11), 0), "again:", ("s_memtime", sgpr(12, 2)), ("s_waitcnt", 0),
            ("s_sub_u32", sgpr(12), sgpr(12), sgpr(10)), ("s_subb_u32", sgpr(13), sgpr(13), sgpr(11)),
            ("s_cmp_lt_i32", sgpr(13), 0), ("s_mov_b64", sgpr(12, 2), 0), ("s_cbranch_scc1", "again"), SET, END]
    assert run(code_object({"k": rows}), 3) == (1,)


def test_a_work_group_that_no_compute_unit_holds():
    """16 waves of 512 registers: four fit."""
    data = code_object({"k": [END]}, vgprs=256, agprs=256)
    with pytest.raises(Invalid, match=r"kernel k: a work-group of 16 waves does not fit .*512 VGPRs of a wave"):
        run(data, 1, waves=16)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_time_limit_tells_where_waves_stand(threads):
    """A counter makes each round another state; the report is bounded, and names the work-groups still to come."""
    rows = [*START, ("s_mov_b32", sgpr(9), 0), "again:", ("s_add_u32", sgpr(9), sgpr(9), 1),
            *[("s_nop", 0)] * 20, ("s_branch", "again")]
    with pytest.raises(TimeLimit) as caught:
        run(code_object({"k": rows}, lds_bytes=65536), 1000, threads=threads, options=LaunchOptions(time_limit=0.05))
    message = str(caught.value)
    assert "no end within the time limit of 0.05 s" in message and "work-groups have not started" in message
    assert "at pc 0x" in message and "`s_add_u32" in message and len(message) < 1000 and "\n" not in message


def test_time_that_compiling_takes_does_not_count(monkeypatch):
    """A function is ready shortly before the limit would end the launch, and runs for longer than what is left."""
    far = sgpr(20, 2)
    jump = [("s_getpc_b64", far), ("s_add_u32", sgpr(20), sgpr(20), "f"), ("s_addc_u32", sgpr(21), sgpr(21), "f"),
            ("s_setpc_b64", far)]
    loop = [("s_mov_b32", sgpr(9), 0), "again:", ("s_add_u32", sgpr(9), sgpr(9), 1),
            *[("v_add_u32", vgpr(4 + i), 1, vgpr(4 + i)) for i in range(20)],
            ("s_cmp_lg_u32", sgpr(9), 1 << 20), ("s_cbranch_scc1", "again"), SET, END]
    data, device = code_object({"k": [*START, *jump], "f": loop}, ["k"]), EmulatorDevice(ISA.target)
    buffer, calls, require = device.alloc(4), [], HostedCode.require
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")

    def seconds(handle):
        start = time.monotonic()
        device.launch(handle, (1, 1, 1), (LANES, 1, 1), kernarg)
        return time.monotonic() - start

    def slowly(code, pc, kernel):
        """The first call is for the kernel, before the launch."""
        require(code, pc, kernel)
        calls.append(time.monotonic())
        if len(calls) > 1:
            time.sleep(((TIMES - 0.3) * takes - (time.monotonic() - calls[0])) % (TIMES * takes))

    compiled = device.load(data).kernel("k")
    seconds(compiled)
    takes = seconds(compiled)
    monkeypatch.setattr(HostedCode, "require", slowly)
    device.limits = LaunchLimits(time_limit=TIMES * takes)
    device.write(buffer.address, bytes(4))
    seconds(device.load(data).kernel("k"))
    assert device.read(buffer.address, 4) == b"\1\0\0\0" and len(calls) > 1


def test_source_lines_of_waves_that_stand(require_tool, tmp_path):
    source = "\nKERNEL void k(volatile u32 *p) {\n  while (*p == 0)\n    ;\n}\n"
    data = compile_hip(require_tool("clang-22"), tmp_path, source, "-gline-tables-only")
    line = next(i for i, text in enumerate((tmp_path / "k.hip").read_text().split("\n"), 1) if "while" in text)
    with pytest.raises(DeviceError, match=rf"deadlock.*k\.hip:{line}\)"):
        launch(EmulatorDevice(ISA.target), data, "k", [np.zeros(1, np.uint32)])
