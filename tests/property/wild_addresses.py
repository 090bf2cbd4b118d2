"""Every kind of memory instruction with wild addresses, in a process of its own.

In: SEED, how many of the instructions (0: all), launches of each. Out: exit code 0 if each launch ended in a
DeviceError or with the right result, as a model in Python says, whose addresses are plain integers. What must not
happen is that this process dies: then the last line on stderr names the instruction.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from emulated import ISA, KERNARG_BYTES, LANES, code_object  # noqa: E402

from luthier_py.base.errors import DeviceError  # noqa: E402
from luthier_py.emulator import EmulatorDevice  # noqa: E402
from luthier_py.emulator.interface import Buffer  # noqa: E402
from luthier_py.emulator.waves.launch import PRIVATE_BASE, SHARED_BASE  # noqa: E402
from luthier_py.isa import EXEC, sgpr, vgpr  # noqa: E402

LDS_BYTES, SCRATCH_BYTES, TARGET_BYTES = 256, 64, 512
ROW = 4 * LANES
CONTROL_BYTES, OUT_BYTES = 2 * ROW + 64, 4 * ROW
WRAP32, WRAP64 = (1 << 32) - 1, (1 << 64) - 1
ADDRESS, NEAR, DATA = vgpr(2, 2), vgpr(2), 4
SADDR, RESOURCE, SOFFSET = sgpr(22, 2), sgpr(24, 4), sgpr(28)
NEAR_BASE = 0x40
WIDTHS = {"ubyte": 1, "ushort": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
STORED = {"byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
SHARED_WIDTHS = {"u8": 1, "u16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}


@dataclass(frozen=True)
class Case:
    """One instruction. ``space``: where its addresses lead; None where only the process's life is looked at."""

    name: str
    row: bytes
    space: str | None
    size: int
    store: bool
    offset: int = 0
    base: bool = False  # SADDR and a 32-bit offset


def cases() -> Iterator[Case]:
    for store, widths in ((False, WIDTHS), (True, STORED)):
        for element, size in widths.items():
            for offset in (0, -16, 12):
                yield vector(f"global_{_verb(store)}_{element}", "global", size, store, offset, "off")
                yield vector(f"global_{_verb(store)}_{element}", "global", size, store, offset, SADDR)
                yield vector(f"scratch_{_verb(store)}_{element}", "scratch", size, store, offset, "off")
            for offset in (0, 12):
                yield vector(f"flat_{_verb(store)}_{element}", "flat", size, store, offset, None)
    for element, size in SHARED_WIDTHS.items():
        for offset in (0, 4, 0xFFF0):
            yield shared(f"ds_read_{element}", size, False, offset)
            yield shared(f"ds_write_{element.replace('u', 'b')}", size, True, offset)
    yield from unchecked()


def _verb(store: bool) -> str:
    return "store" if store else "load"


def vector(name: str, space: str, size: int, store: bool, offset: int, saddr: Any) -> Case:
    data = vgpr(DATA, max(size // 4, 1))
    address = ADDRESS if saddr is None or space == "global" and saddr == "off" else NEAR
    operands = [address, data] if store else [data, address]
    row = ISA.make(name, *operands, *([] if saddr is None else [saddr]), offset=offset).raw
    return Case(f"{name} {saddr} {offset}", row, space, size, store, offset, saddr is SADDR)


def shared(name: str, size: int, store: bool, offset: int) -> Case:
    data = vgpr(DATA, max(size // 4, 1))
    row = ISA.make(name, *([NEAR, data] if store else [data, NEAR]), offset=offset).raw
    return Case(f"{name} {offset}", row, "lds", size, store, offset)


def unchecked() -> Iterator[Case]:
    """Atomics, pairs, buffers and scalar memory: whatever they do, the process goes on."""
    one, two, four = vgpr(DATA), vgpr(DATA, 2), vgpr(DATA, 4)
    rows: list[tuple[Sequence[Any], dict[str, int]]] = [
        (("global_atomic_add", ADDRESS, one, "off"), {}), (("global_atomic_add_x2", ADDRESS, two, "off"), {}),
        (("global_atomic_add", NEAR, one, SADDR), {}), (("global_atomic_cmpswap_x2", ADDRESS, four, "off"), {}),
        (("flat_atomic_swap", ADDRESS, one), {}), (("flat_atomic_inc_x2", ADDRESS, two), {}),
        (("global_load_short_d16_hi", one, ADDRESS, "off"), {}), (("flat_load_sbyte", one, ADDRESS), {}),
        (("ds_add_u32", NEAR, one), {"offset": 8}), (("ds_add_u64", NEAR, two), {}),
        (("ds_cmpst_rtn_b32", one, NEAR, vgpr(5), vgpr(6)), {}),
        (("ds_read2_b32", two, NEAR), {"offset1": 255}), (("ds_read2_b64", four, NEAR), {"offset0": 255}),
        (("ds_read2st64_b32", two, NEAR), {"offset1": 255}),
        (("ds_write2_b32", NEAR, one, vgpr(5)), {"offset0": 7}),
        (("ds_bpermute_b32", one, NEAR, vgpr(1)), {}), (("ds_permute_b32", one, NEAR, vgpr(1)), {}),
    ]
    for flags in ({}, {"offen": 1}, {"idxen": 1}):
        where = NEAR if flags else "off"
        rows += [((f"buffer_{what}", data, where, RESOURCE, SOFFSET), {**flags, "offset": offset})
                 for what, data in (("load_dword", one), ("load_dwordx4", four), ("store_dword", one),
                                    ("store_dwordx4", four), ("load_ubyte", one), ("atomic_add", one))
                 for offset in (0, 4095)]
    rows += [((f"s_load_dword{count}", sgpr(32, size), SADDR, place), {})
             for count, size in (("", 1), ("x2", 2), ("x4", 4), ("x8", 8), ("x16", 16)) for place in (0, -16, SOFFSET)]
    rows += [((f"s_buffer_load_dword{count}", sgpr(32, size), RESOURCE, place), {})
             for count, size in (("", 1), ("x4", 4), ("x16", 16)) for place in (0, 16, SOFFSET)]
    for row, flags in rows:
        yield Case(f"{row[0]} {flags}", ISA.make(*row, **flags).raw, None, 0, False)


def kernel(case: Case) -> bytes:
    """Control: the addresses' low and high halves, EXEC, a scalar address, a resource, a scalar offset."""
    make = ISA.make
    rows: list[Any] = [
        ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_load_dwordx2", sgpr(18, 2), sgpr(4, 2), 16),
        ("s_load_dwordx8", sgpr(20, 8), sgpr(0, 2), 2 * ROW), ("s_load_dword", SOFFSET, sgpr(0, 2), 2 * ROW + 32),
        ("v_lshlrev_b32", vgpr(1), 2, vgpr(0)), make("global_load_dword", vgpr(2), vgpr(1), sgpr(0, 2)).raw,
        make("global_load_dword", vgpr(3), vgpr(1), sgpr(0, 2), offset=ROW).raw,
        *(("v_mov_b32", vgpr(DATA + i), 0) for i in range(5)),
        *(make("scratch_store_dwordx4", vgpr(DATA + 4), vgpr(DATA, 4), "off", offset=at).raw
          for at in range(0, SCRATCH_BYTES, 16)),
        *(("v_add_u32", vgpr(DATA + i), 7 + i, vgpr(0)) for i in range(4)),
        ("s_mov_b64", sgpr(EXEC, 2), sgpr(20, 2)), case.row, ("s_mov_b64", sgpr(EXEC, 2), -1),
        *(make("global_store_dword", vgpr(1), vgpr(DATA + i), sgpr(18, 2), offset=ROW * i).raw for i in range(4)),
        ("s_endpgm",),
    ]
    return code_object({"k": rows}, lds_bytes=LDS_BYTES, scratch_bytes=SCRATCH_BYTES)


class Ground:
    """A device, its buffers, and what they hold before each launch."""

    def __init__(self) -> None:
        self.device = EmulatorDevice(ISA.target)
        self.buffers = [self.device.alloc(size) for size in (CONTROL_BYTES, TARGET_BYTES, OUT_BYTES)]
        self.target = bytes(range(256)) * (TARGET_BYTES // 256)
        addresses = struct.pack("<3Q", *(buffer.address for buffer in self.buffers))
        self.kernarg = addresses.ljust(KERNARG_BYTES, b"\0")

    def bytes_at(self, address: int, size: int, control: bytes) -> tuple[Buffer, bytes] | None:
        """The buffer that these bytes lie in, with its content."""
        for buffer, content in zip(self.buffers, (control, self.target, bytes(OUT_BYTES)), strict=True):
            if buffer.address <= address and address + size <= buffer.address + buffer.size:
                return buffer, content
        return None

    def run(self, case: Case, handle: Any, control: bytes) -> None:
        for buffer, content in zip(self.buffers, (control, self.target, bytes(OUT_BYTES)), strict=True):
            self.device.write(buffer.address, content)
        try:
            self.device.launch(handle, (1, 1, 1), (LANES, 1, 1), self.kernarg)
            failed = False
        except DeviceError as error:
            where = error.where
            assert where is not None and where.kernel == "k" and where.pc is not None and "lane " in error.message
            failed = True
        if case.space is not None:
            self.compare(case, control, failed)

    def compare(self, case: Case, control: bytes, failed: bool) -> None:
        words = struct.unpack(f"<{CONTROL_BYTES // 4}I", control)
        mask, base = struct.unpack_from("<2Q", control, 2 * ROW)
        data = [bytearray(struct.pack("<4I", *(lane + 7 + i for i in range(4)))) for lane in range(LANES)]
        wrong = False
        for lane in (lane for lane in range(LANES) if mask >> lane & 1):
            address = effective(case, words[lane], words[LANES + lane], base)
            content = content_at(case, self, address, control)
            wrong |= content is None
            if content is not None and not case.store:
                data[lane][: max(case.size, 4)] = content.ljust(4, b"\0")
        assert failed == wrong, f"{'failed' if failed else 'went through'}: {case.name}, exec 0x{mask:x}"
        if failed or case.store:
            return
        out = struct.unpack(f"<{4 * LANES}I", self.device.read(self.buffers[2].address, OUT_BYTES))
        for lane in range(LANES):
            found = struct.pack("<4I", *(out[lane + LANES * i] for i in range(4)))
            assert found == data[lane], f"lane {lane}: {found.hex()}, not {data[lane].hex()}: {case.name}"


def effective(case: Case, low: int, high: int, base: int) -> int:
    """The address of a lane: of 64 bits, or of 32 in LDS and private memory."""
    if case.space in ("lds", "scratch"):
        return (low + case.offset) & WRAP32
    return ((base + low if case.base else low | high << 32) + case.offset) & WRAP64


def content_at(case: Case, ground: Ground, address: int, control: bytes) -> bytes | None:
    """What a load gives there; None where there is nothing. LDS and private memory are zero at first."""
    space, size = case.space, case.size
    if space == "flat" and address >> 32 in (SHARED_BASE >> 32, PRIVATE_BASE >> 32):
        space, address = ("lds" if address >> 32 == SHARED_BASE >> 32 else "scratch"), address & WRAP32
    if space == "lds":
        return bytes(size) if address + size <= LDS_BYTES or case.space == "lds" else None  # outside DS reads 0
    if space == "scratch":
        return bytes(size) if address + size <= SCRATCH_BYTES else None
    found = ground.bytes_at(address, size, control)
    return None if found is None else found[1][address - found[0].address :][:size]


def control(rng: random.Random, ground: Ground, case: Case) -> bytes:
    """Addresses at the edges of what there is, and where sums wrap."""
    start = ground.buffers[1].address
    places = [
        0, 1 << 63, 1 << 64, 1 << 32, start & ~WRAP32, SHARED_BASE, SHARED_BASE + LDS_BYTES, PRIVATE_BASE,
        PRIVATE_BASE + SCRATCH_BYTES, PRIVATE_BASE + (1 << 32), start, start + TARGET_BYTES, LDS_BYTES, SCRATCH_BYTES]
    good = {"lds": 0, "scratch": 0}.get(case.space or "", start)

    def near() -> int:
        return rng.choice(places) + rng.choice((0, 0, rng.randrange(-20, 20), 4 * rng.randrange(-5, 5)))

    one, step = near() if rng.random() < 0.7 else good, rng.choice((0, 4, 4, 8))
    addresses = [one + step * lane for lane in range(LANES)]
    if rng.random() < 0.5:
        addresses = [good + 4 * lane % 48 for lane in range(LANES)]
        addresses[rng.randrange(LANES)] = near()
    base = near() & WRAP64
    if case.base and rng.random() < 0.8:  # most of the sum in the scalar register
        base = (addresses[0] - NEAR_BASE) & WRAP64
        addresses = [(address - addresses[0] + NEAR_BASE) & WRAP32 for address in addresses]
    mask = rng.choice((WRAP64, WRAP64, 1 << rng.randrange(LANES), rng.getrandbits(64), 0))
    resource = [near() & WRAP32, rng.choice((0, near() >> 32, 16 << 16)) & WRAP32,
                rng.choice((WRAP32, TARGET_BYTES, 4, 0)), rng.choice((0, 1 << 23))]
    lows, highs = ([address >> shift & WRAP32 for address in addresses] for shift in (0, 32))
    if case.space is None and rng.random() < 0.5:
        resource[:2] = [start & WRAP32, start >> 32]
    scalars = struct.pack("<2Q5I", mask, base, *resource, near() & WRAP32)
    return (struct.pack(f"<{2 * LANES}I", *lows, *highs) + scalars).ljust(CONTROL_BYTES, b"\0")


def main(seed: int, count: int, rounds: int) -> None:
    rng, ground = random.Random(seed), Ground()
    chosen = list(cases())
    for case in rng.sample(chosen, count) if count else chosen:
        print(case.name, file=sys.stderr)
        module = ground.device.load(kernel(case), case.name)
        for _ in range(rounds):
            ground.run(case, module.kernel("k"), control(rng, ground, case))
        module.unload()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
