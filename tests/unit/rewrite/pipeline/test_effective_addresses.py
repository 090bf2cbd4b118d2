"""Effective addresses of every form: memory holds its own number in each dword, so what is loaded says where from."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest
from emulated import ISA, LANES, code_object
from given import given

from luthier_py.base.errors import EditConflict, HookError
from luthier_py.binary.loader import load
from luthier_py.isa import M0, AccessKind, Reg, sgpr, vgpr
from luthier_py.program.ir import Instr, lift
from luthier_py.rewrite.tool import (
    Lane,
    Mutator,
    Place,
    access_bytes,
    access_kind,
    address,
    bool_,
    bounds,
    computed,
    device,
    u32,
)

Seen: TypeAlias = list[tuple[int, ...]]

DWORDS = 4096
NUMBERED = struct.pack(f"<{DWORDS}I", *range(DWORDS))
BUFFER = sgpr(8, 2)  # where it lies
START = [
    ("s_load_dwordx2", BUFFER, sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", vgpr(4), 2, vgpr(0)),
    ("v_mul_u32_u24", vgpr(5), 12, vgpr(0)), ("s_mov_b32", sgpr(20), 64), ("s_mov_b32", sgpr(M0), -1),
    ("v_mov_b32", vgpr(2), -1), ("v_mov_b32", vgpr(3), -1),
]
FAR = [("v_mov_b32", vgpr(7), sgpr(9)), ("v_add_co_u32_e64", vgpr(6), sgpr(22, 2), sgpr(8), vgpr(5)),
       ("v_addc_co_u32_e64", vgpr(7), sgpr(22, 2), 0, vgpr(7), sgpr(22, 2))]

FURTHER = [("v_add_co_u32_e64", vgpr(6), sgpr(22, 2), sgpr(20), vgpr(6)),
           ("v_addc_co_u32_e64", vgpr(7), sgpr(22, 2), 0, vgpr(7), sgpr(22, 2))]


def made(name: str, *operands: Any, **modifiers: int) -> bytes:
    return ISA.make(name, *operands, **modifiers).raw


@device
def as_number(passes: bool_) -> Lane[u32]:
    return u32(passes)


@device
def each_as_number(passes: Lane[bool_]) -> Lane[u32]:
    return u32(passes)


def loads(rows: Sequence[Any], asked: Callable[[Instr], Sequence[tuple[Any, int]]], **kernel: Any) -> Seen:
    """Of the last of ``rows``: what hooks before it are given, in each lane; where the buffer is; and its destination
    once it is done."""
    at = len(START) + len(rows) - 1

    def wanted(m: Mutator, instrs: Sequence[Instr]) -> list[tuple[Instr, Place, Any, int]]:
        instr, last = instrs[at], instrs[-1]
        data = instr.inst.find("vdst") or instr.inst.find("sdst") or instr.inst["vdata"]
        assert data.reg is not None
        regs = [Reg(data.reg.file, data.reg.index + each) for each in range(data.reg.dwords)]
        return [*((instr, Place.BEFORE, *each) for each in asked(instr)), (last, Place.BEFORE, BUFFER, 64),
                *((last, Place.BEFORE, reg, 32) for reg in regs)]

    found, _ = given([*START, *rows, ("s_waitcnt", 0)], wanted, [NUMBERED], **kernel)
    return found


@pytest.mark.parametrize(("rows", "start", "step"), [
    ([*FAR, made("global_load_dword", vgpr(2), vgpr(6, 2), "off", offset=40)], 40, 12),
    ([*FAR, *FURTHER, made("global_load_dword", vgpr(2), vgpr(6, 2), "off", offset=-64)], 0, 12),
    ([made("global_load_dword", vgpr(2), vgpr(5), BUFFER, offset=8)], 8, 12),
    ([made("global_load_dword", vgpr(2), vgpr(4), BUFFER, offset=0)], 0, 4),
    ([*FAR, made("flat_load_dword", vgpr(2), vgpr(6, 2), offset=16)], 16, 12),
    ([made("s_load_dword", sgpr(30), BUFFER, 44)], 44, 0),
    ([made("s_load_dword", sgpr(30), BUFFER, sgpr(20))], 64, 0),
])
def test_global_and_flat_and_scalar(rows: Sequence[Any], start: int, step: int) -> None:
    where, base, data = loads(rows, lambda instr: [(address(instr), 64)])
    assert where == tuple(base[0] + 4 * number for number in data)
    assert where == tuple(base[0] + start + step * lane for lane in range(LANES))


@pytest.mark.parametrize(("row", "places"), [
    (made("ds_read_b32", vgpr(2), vgpr(4), offset=8), [lambda lane: 4 * lane + 8]),
    (made("ds_read2_b32", vgpr(2, 2), vgpr(4), offset0=3, offset1=1),
     [lambda lane: 4 * lane + 12, lambda lane: 4 * lane + 4]),
    (made("ds_read2st64_b32", vgpr(2, 2), vgpr(4), offset0=0, offset1=2),
     [lambda lane: 4 * lane, lambda lane: 4 * lane + 512]),
])
def test_local(row: bytes, places: list[Callable[[int], int]]) -> None:
    filled = [row for k in range(4) for row in (
        ("v_add_u32", vgpr(3), 64 * k, vgpr(0)) if k == 0 else ("v_add_u32", vgpr(3), sgpr(20), vgpr(3)),
        made("ds_write_b32", vgpr(4), vgpr(3), offset=256 * k))]
    rows = [*filled, ("s_waitcnt", 0), row]
    seen = loads(rows, lambda instr: [(address(instr, k), 64) for k in range(len(places))], lds_bytes=2048)
    where, data = seen[: len(places)], seen[len(places) + 1 :]
    assert where == [tuple(map(place, range(LANES))) for place in places]
    assert where == [tuple(4 * number for number in row) for row in data]


@pytest.mark.parametrize("row", [
    made("scratch_load_dword", vgpr(2), vgpr(8), "off", offset=-4),
    made("scratch_load_dword", vgpr(2), "off", sgpr(21), offset=4),
])
def test_scratch(row: bytes) -> None:
    filled = [row for k in range(8) for row in (
        ("v_mov_b32", vgpr(3), k), ISA.make("scratch_store_dword", vgpr(9), vgpr(3), "off", offset=4 * k).raw)]
    rows = [("v_mov_b32", vgpr(9), 0), ("s_mov_b32", sgpr(21), 12), *filled, ("v_and_b32", vgpr(8), 12, vgpr(4)),
            ("v_add_u32", vgpr(8), 8, vgpr(8)), ("s_waitcnt", 0), row]
    where, _, data = loads(rows, lambda instr: [(address(instr), 64)], scratch_bytes=64)
    assert where == tuple(4 * number for number in data)


def resource(*words: int | Reg) -> list[Any]:
    """s[12:15]; the first word is the buffer's, the others as given (of the second the upper half)."""
    return [("s_mov_b32", sgpr(12), sgpr(8)), ("s_or_b32", sgpr(13), sgpr(9), words[0]),
            ("s_mov_b32", sgpr(14), words[1]), ("s_mov_b32", sgpr(15), words[2]), ("v_and_b32", vgpr(10), 31, vgpr(0)),
            ("v_lshrrev_b32", vgpr(11), 5, vgpr(0)), ("v_lshlrev_b32", vgpr(11), 3, vgpr(11)),
            ("v_lshlrev_b32", vgpr(12), 3, vgpr(0))]


SWIZZLE, RESOURCE = 1 << 31, sgpr(12, 4)
FORMAT, ADD_TID = 7 << 12 | 4 << 15, 1 << 23  # without a format or lanes' numbers nothing is bound
KINDS = [(stride << 16 | swizzle, FORMAT | element << 19 | group << 21)
         for stride in (0, 16, 36) for swizzle in (0, SWIZZLE) for element in (0, 1) for group in (0, 2)
         if swizzle or (element, group) == (0, 0)] + [(8 << 16, ADD_TID)]


LOADS = [
    made("buffer_load_dword", vgpr(2), vgpr(12), RESOURCE, sgpr(20), offen=1, offset=4),
    made("buffer_load_dword", vgpr(2), vgpr(10), RESOURCE, 0, idxen=1, offset=8),
    made("buffer_load_dword", vgpr(2), vgpr(10, 2), RESOURCE, sgpr(20), idxen=1, offen=1, offset=4),
    made("buffer_load_dword", vgpr(2), "off", RESOURCE, 4, offset=12),
]
CASES = [pytest.param(load, *kind, marks=() if at % len(LOADS) == which else pytest.mark.slow)
         for at, kind in enumerate(KINDS) for which, load in enumerate(LOADS)]


@pytest.mark.parametrize(("row", "second", "fourth"), CASES)
def test_buffers(row: bytes, second: int, fourth: int) -> None:
    rows = [*resource(second, 8192, fourth), row]
    where, inside, base, data = loads(rows, lambda instr: [
        (address(instr), 64), (computed(each_as_number, bounds(instr)), 32)])
    assert inside == (1,) * LANES
    assert where == tuple(base[0] + 4 * number for number in data)


PAIR = made("buffer_load_dwordx2", vgpr(2, 2), vgpr(12), RESOURCE, sgpr(20), offen=1, offset=4)
BY_INDEX = made("buffer_load_dword", vgpr(2), vgpr(0), RESOURCE, 0, idxen=1)


@pytest.mark.parametrize(("row", "stride", "records", "fourth", "last"), [
    (PAIR, 0, 200, FORMAT, 23), (PAIR, 16, 200, FORMAT, 23), (PAIR, 16, 200, ADD_TID, 63),
    (BY_INDEX, 4, 50, FORMAT, 49), (BY_INDEX, 4, 50, 0, -1), (BY_INDEX, 4, 50, ADD_TID, 24),
    (made("buffer_load_dword", vgpr(2), vgpr(0), RESOURCE, 0, idxen=1, offset=4), 16, 50, FORMAT, 49),
])
def test_what_is_out_of_range_loads_nothing(row: bytes, stride: int, records: int, fourth: int, last: int) -> None:
    rows = [*resource(stride << 16, records, fourth), row]
    inside, _, *data = loads(rows, lambda instr: [(computed(each_as_number, bounds(instr)), 32)])
    assert inside == tuple(int(lane <= last) for lane in range(LANES))
    assert all((word != 0) == bool(passes) for word, passes in zip(data[-1][1:], inside[1:], strict=True))


@pytest.mark.parametrize(("offset", "records", "passes"), [(40, 44, 1), (40, 43, 0), (44, 44, 0), (0, 4, 1)])
def test_scalar_buffers(offset: int, records: int, passes: int) -> None:
    rows = [*resource(0, records, 0), made("s_buffer_load_dword", sgpr(30), RESOURCE, offset)]
    where, inside, base, data = loads(rows, lambda instr: [
        (address(instr), 64), (computed(as_number, bounds(instr)), 32)])
    assert where == (base[0] + offset,) * LANES and inside == (passes,) * LANES
    assert data == (offset // 4 if passes else 0,) * LANES


@pytest.mark.parametrize(("row", "size", "kind"), [
    (made("global_load_dwordx3", vgpr(12, 3), vgpr(6, 2), "off"), 12, AccessKind.LOAD),
    (made("global_store_byte", vgpr(6, 2), vgpr(2), "off"), 1, AccessKind.STORE),
    (made("global_load_short_d16_hi", vgpr(2), vgpr(6, 2), "off"), 2, AccessKind.LOAD),
    (made("global_atomic_add_x2", vgpr(6, 2), vgpr(12, 2), "off"), 8, AccessKind.ATOMIC),
    (made("ds_read2_b64", vgpr(12, 4), vgpr(4)), 16, AccessKind.LOAD),
    (made("ds_write2st64_b32", vgpr(4), vgpr(2), vgpr(3)), 8, AccessKind.STORE),
    (made("ds_add_u32", vgpr(4), vgpr(2)), 4, AccessKind.ATOMIC),
    (made("ds_add_rtn_u32", vgpr(3), vgpr(4), vgpr(2)), 4, AccessKind.ATOMIC),
    (made("s_load_dwordx16", sgpr(32, 16), BUFFER, 0), 64, AccessKind.LOAD),
    (made("buffer_load_ubyte", vgpr(2), "off", RESOURCE, 0), 1, AccessKind.LOAD),
])
def test_widths_and_kinds(row: bytes, size: int, kind: AccessKind) -> None:
    program = lift(load(code_object({"k": [row, ("s_endpgm", 0)]})))
    instr = next(iter(program.kernel("k").function.instrs))
    assert (access_bytes(instr), access_kind(instr)) == (size, kind)


def test_what_has_no_address() -> None:
    rows = [("v_mov_b32", vgpr(2), 0), made("ds_bpermute_b32", vgpr(2), vgpr(4), vgpr(2)),
            made("ds_append", vgpr(2)), made("ds_read_b32", vgpr(2), vgpr(4)),
            made("tbuffer_load_format_x", vgpr(2), "off", RESOURCE, 0), ("s_endpgm", 0)]
    program = lift(load(code_object({"k": rows})))
    move, permute, append, read, typed = list(program.kernel("k").function.instrs)[:5]
    for instr in (move, permute):
        with pytest.raises(HookError, match=f"{instr.op.mnemonic} accesses no memory"):
            address(instr)
    with pytest.raises(HookError, match="the address of ds_append is made in a way that is not known here"):
        address(append)
    with pytest.raises(HookError, match="how many bytes tbuffer_load_format_x accesses is not known"):
        access_bytes(typed)
    with pytest.raises(HookError, match="ds_read_b32 accesses 1 elements; 1 is none"):
        address(read, 1)
    with pytest.raises(HookError, match="test_effective_addresses.py:.*this needs Instr"):
        address(None)  # type: ignore[arg-type]


def test_an_address_is_taken_before_it_is_overwritten() -> None:
    row = made("global_load_dword", vgpr(6), vgpr(6, 2), "off")
    with pytest.raises(EditConflict, match=r"overwrites v6, which the address of global_load_dword is made of"):
        given([*START, *FAR, row], lambda m, instrs: [(instrs[-2], Place.AFTER, address(instrs[-2]), 64)], [NUMBERED])
