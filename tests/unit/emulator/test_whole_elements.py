"""A lane's 8 bytes are loaded and stored at once, as GPUs do it and libraries rely on: RCCL's LL protocol stores data
and flag together, and whoever sees the flag takes the data."""

from __future__ import annotations

import re
import struct

import pytest
from emulated import ISA
from launching import compile_hip, device

from luthier_py.base.llvm import Effort, bitcode_text
from luthier_py.emulator.native.bitcode import read_bitcode
from luthier_py.emulator.options.settings import Settings
from luthier_py.emulator.reading.discover import discover
from luthier_py.emulator.translation import host_functions
from luthier_py.emulator.translation.host_functions import DividedFunction
from luthier_py.isa import vgpr

NARROW = ("i8", "i16", "i32")
RACE = """
typedef u32 V __attribute__((ext_vector_type(WORDS)));
KERNEL void k(volatile SPACE V* memory, u32* torn, u32* seen, u32 rounds, u32 stride, u32 lanes) {
  if (X >= lanes) return;
  volatile SPACE V* mine = memory + X * stride;
  u32 bad = 0, found = 0;
  for (u32 i = 1; i <= rounds; i++) {
    if (GX == 0) { *mine = (V)(i); continue; }
    V v = *mine;
    for (u32 j = 0; j < WORDS; j += 2) bad += v[j] != v[j + 1];
    found += v[0] != 0;
  }
  if (GX) { torn[X] = bad; seen[X] = found; }
}
"""


@pytest.mark.parametrize("space", ["", "__attribute__((address_space(1)))"], ids=["flat", "global"])
@pytest.mark.parametrize("words", [2, 4])
def test_nobody_sees_half_of_what_another_worker_stores(clang, tmp_path, words, space):
    code = compile_hip(clang, tmp_path, RACE, f"-DWORDS={words}", f"-DSPACE={space}")
    emulator = device(threads=2)
    kernel = emulator.load(code).kernel("k")
    memory, results = emulator.alloc(1 << 14), emulator.alloc(512)
    for stride, lanes in ((1, 64), (1, 40), (2, 64), (0, 64), (1, 1)):
        emulator.write(memory.address, bytes(memory.size))
        emulator.write(results.address, bytes(results.size))
        places = memory.address, results.address, results.address + 256
        arguments = struct.pack("<QQQIII", *places, 5000, stride, lanes)
        emulator.launch(kernel, (2, 1, 1), (64, 1, 1), arguments.ljust(kernel.record.kernarg_bytes, b"\0"))
        found = struct.unpack("<128I", emulator.read(results.address, 512))
        assert not any(found[:64]), f"lanes {stride} elements apart"
        assert all(found[64 : 64 + lanes])


@pytest.mark.parametrize("wave_size", [32, 64])
def test_what_is_loaded_of_memory_is_read_once(wave_size):
    """LLVM reads memory again for another part of a vector, unless the load is volatile."""
    text = bitcode_text(read_bitcode("accesses", wave_size))
    loads = re.findall(r"load (volatile )?(<\d+ x i\d+>|i\d+), ptr %[^,]*, align 1\b", text)
    wide = {kind: {volatile for volatile, each in loads if each == kind} for _, kind in loads if kind not in NARROW}
    stored_between = {"<16 x i32>": {"", "volatile "}}  # in LDS, which is one worker's
    assert {"i64", "<48 x i32>", "<64 x i32>", "<16 x i8>"} < wide.keys()
    assert wide == dict.fromkeys(wide, {"volatile "}) | stored_between


@pytest.mark.parametrize("name", ["global_load_dword", "global_load_dwordx2", "global_load_dwordx4"])
def test_so_are_loads_in_loops(name):
    """Of what the application owns alone nothing is known of its alignment."""
    load = ISA.make(name, vgpr(4, {"x2": 2, "x4": 4}.get(name[-2:], 1)), vgpr(2, 2), "off")
    code = load.raw + ISA.make("s_endpgm").raw
    function = DividedFunction(discover(lambda pc: ISA.decode(code[pc : pc + 8]), 0), 0, Settings(64, 0xF0, ISA.target))
    (part,) = function.parts
    for effort in (Effort.GENERATE, Effort.OPTIMISE):
        loads = re.findall(r"load (volatile )?\S+.*, align 1$", function.translate_part(part, effort).ir, re.M)
        assert loads and all(loads)


def test_better_code_of_another_translator_is_not_taken(monkeypatch):
    """What is compiled fast at first has its better code under the name of the first text."""
    code = ISA.make("s_nop", 0).raw * 600 + ISA.make("s_endpgm").raw
    blocks = discover(lambda pc: ISA.decode(code[pc : pc + 8]), 0)

    def digests() -> list[str]:
        function = DividedFunction(blocks, 0, Settings(64, 0xF0, ISA.target))
        return [function.translate_part(name, function.effort).digest for name in function.parts]

    before = digests()
    monkeypatch.setattr(host_functions, "translator", lambda: "another")
    assert all(one != other for one, other in zip(before, digests(), strict=True))
