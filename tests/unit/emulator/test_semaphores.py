"""Semaphores of all waves of a launch: who goes on, in which order, and who never does (ds_gws_sema_p,
ds_gws_sema_v, ds_gws_sema_br, ds_gws_sema_release_all)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from emulated import ISA, KERNARG_BYTES, LANES, code_object

from luthier_py.base.errors import DeviceError
from luthier_py.emulator import EmulatorDevice
from luthier_py.isa import EXEC, M0, sgpr, vgpr

MEMORY, GROUP = sgpr(0, 2), sgpr(6)
START = [("s_load_dwordx2", MEMORY, sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_mov_b32", vgpr(2), 0),
         ("s_mov_b32", sgpr(M0), 0)]
END = ("s_endpgm",)


def gws(name: str, *operands: object, offset: int = 0) -> bytes:
    return ISA.make(f"ds_gws_{name}", *operands, offset=offset, gds=1).raw


def number(count: int) -> tuple[object, ...]:
    return "v_mov_b32", vgpr(3), count


P, V, ALL, BULK, INIT = (gws("sema_p"), gws("sema_v"), gws("sema_release_all"), gws("sema_br", vgpr(3)),
                         gws("init", vgpr(3)))
PLUS_ONE = [ISA.make("global_load_dword", vgpr(4), vgpr(2), MEMORY).raw, ("s_waitcnt", 0), ("s_sleep", 1),
            ("v_add_u32", vgpr(4), 1, vgpr(4)), ISA.make("global_store_dword", vgpr(2), vgpr(4), MEMORY).raw,
            ("s_waitcnt", 0)]  # others have their turn between

ADD = [("v_mov_b32", vgpr(7), 1), ("s_mov_b64", sgpr(EXEC, 2), 1),
       ISA.make("global_atomic_add", vgpr(2), vgpr(7), MEMORY).raw, ("s_waitcnt", 0)]


def only(group: int, *rows: object) -> list[object]:
    """What one work-group alone does."""
    return [("s_cmp_lg_u32", GROUP, group), ("s_cbranch_scc1", f"not{group}"), *rows, f"not{group}:"]


def run(rows: Sequence[Any], groups: int, waves: int = 1, words: int = 1, threads: int = 1) -> Sequence[int]:
    """What the buffer of ``words`` zeros holds afterwards."""
    device = EmulatorDevice(ISA.target, threads=threads)
    buffer = device.alloc(4 * words)
    device.write(buffer.address, bytes(4 * words))
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    device.launch(device.load(code_object({"k": [*START, *rows, END]})).kernel("k"), (groups, 1, 1),
                  (LANES * waves, 1, 1), kernarg)
    return struct.unpack(f"<{words}I", device.read(buffer.address, buffer.size))


@pytest.mark.parametrize("threads", [1, 3])
def test_one_wave_at_a_time(threads):
    """Without the semaphore additions are lost, since others run between load and store."""
    first_wave = [("v_readfirstlane_b32", sgpr(10), vgpr(0)), ("s_cmp_lg_u32", sgpr(10), 0),
                  ("s_cbranch_scc1", "not0")]
    guarded = [*only(0, *first_wave, number(1), INIT), P, *PLUS_ONE, V]
    assert run(guarded, 40, waves=2, threads=threads) == (80,)
    assert run(PLUS_ONE, 40, waves=2)[0] < 80


def test_in_the_order_in_which_they_came():
    """Each writes its group at the place that the count in the first word says."""
    note = [ISA.make("global_load_dword", vgpr(4), vgpr(2), MEMORY).raw, ("s_waitcnt", 0), ("s_sleep", 1),
            ("v_add_u32", vgpr(4), 1, vgpr(4)), ("v_lshlrev_b32", vgpr(5), 2, vgpr(4)), ("v_mov_b32", vgpr(6), GROUP),
            ISA.make("global_store_dword", vgpr(5), vgpr(6), MEMORY).raw,
            ISA.make("global_store_dword", vgpr(2), vgpr(4), MEMORY).raw, ("s_waitcnt", 0)]
    first = only(8, number(1), INIT)
    assert run([*first, P, *note, V], 9, words=10) == (9, *range(9))


@pytest.mark.parametrize("given", [[number(8), BULK], [number(8), INIT], [V] * 8, [ALL]],
                         ids=["bulk", "init", "v", "all"])
def test_the_last_lets_all_others_go(given):
    rows = [*only(8, *given, END), P, *ADD]
    assert run(rows, 9) == (8,)


@pytest.mark.parametrize("given", [[number(7), BULK], [number(7), INIT], [V] * 7], ids=["bulk", "init", "v"])
def test_or_all_but_one(given):
    with pytest.raises(DeviceError, match="deadlock at a barrier.*wave 0 of work-group 7 at pc 0x.*`ds_gws_sema_p"):
        run([*only(8, *given, END), P, *ADD], 9)


def test_what_is_given_before_somebody_wants_it_is_kept():
    assert run([*only(0, V, V, number(3), BULK, END), P, *ADD], 6) == (5,)
    assert run([*only(0, V, V, V, number(5), INIT, END), P, *ADD], 6) == (5,)  # INIT forgets what was there
    with pytest.raises(DeviceError, match="deadlock"):
        run([*only(0, V, V, V, number(4), INIT, END), P, *ADD], 6)
    with pytest.raises(DeviceError, match="deadlock"):
        run([*only(0, V, ALL, END), P, *ADD], 2)  # nobody waited


def test_resources_are_apart():
    """By the instruction's offset and M0, together."""
    base = ("s_mov_b32", sgpr(M0), 2 << 16)
    assert run([*only(0, gws("sema_v", offset=3), END), base, gws("sema_p", offset=1), *ADD], 2) == (1,)
    with pytest.raises(DeviceError, match="deadlock"):
        run([*only(0, gws("sema_v", offset=3), END), base, gws("sema_p", offset=2), *ADD], 2)


def test_a_barrier_of_the_same_resource_counts_for_itself():
    barrier = gws("barrier", vgpr(3))
    assert run([number(3), barrier, *only(0, number(3), BULK, END), P, *ADD, number(2)], 4) == (3,)
