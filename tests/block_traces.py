"""Traces of all blocks that waves run, and what an interpreter makes of them; and a program with all kinds of calls.

In: a code object and a launch. Out: for each block that ran, in order, the functions that were active. The interpreter
knows how blocks end, and nothing of what tools add to the code. It takes a function that calls itself for one that goes
round.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import Launch, run_instrumented
from luthier_py.features.run.specs import parse_argument
from luthier_py.intrinsics import push
from luthier_py.program.ir import Block, Ending, Function, Program
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Channel, Mutator, Tool, channel, hook, u32, u64, wave_in_launch

OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -fuse-cuid=none -O2".split()
TARGETS = ("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1100", 64), ("gfx1201", 32)
PROGRAM = """
typedef unsigned u32;
#define DEVICE __attribute__((device, noinline)) static
#define KERNEL extern "C" __attribute__((global)) void
#define I (__builtin_amdgcn_workgroup_id_x() * 128 + __builtin_amdgcn_workitem_id_x())
__attribute__((device)) static u32 scaled(u32 a, u32 b) { return a * 1664525 + b; }
DEVICE u32 mixed(u32 a, u32 b) {
    for (u32 i = 0; i < (b & 7); ++i) a = i & 1 ? scaled(a, b) : a ^ a >> 3;
    return a;
}
DEVICE u32 odd(u32 a, u32 b) { return b & 1 ? mixed(b, a) + 1 : a; }
DEVICE u32 chain(u32 a, u32 b) { u32 x = mixed(a, b), y = odd(b, x); return x ^ y; }
DEVICE u32 over(u32 a, u32 b) { u32 x = mixed(a, b); return mixed(x, b + 1); }
DEVICE u32 tree(u32 n) { return n < 2 ? mixed(n, 3) : tree(n - 1) * n + tree(n - 2); }
DEVICE u32 ends(u32 n) { if (n == 3) __builtin_amdgcn_endpgm(); return n * 3; }
KERNEL chains(u32 *out, u32 n) { u32 x = chain(I, n); out[I] = x + (n & 2 ? chain(x, I) : odd(x, n)); }
KERNEL tails(u32 *out, u32 n) { u32 x = over(I, n); for (u32 k = 0; k < n; ++k) x += over(x, I); out[I] = x; }
KERNEL trees(u32 *out, u32 n) { out[I] = tree(I & 7) + mixed(n, n); }
KERNEL pointed(u32 *out, u32 n) {
    u32 (*of[])(u32, u32) = {mixed, odd, over};
    u32 x = I;
    for (u32 k = 0; k < n; ++k) x += of[(k + __builtin_amdgcn_workgroup_id_x()) % 3](x, k);
    out[I] = x;
}
KERNEL ended(u32 *out, u32 n) { u32 x = 0; for (u32 k = 0; k < n; ++k) { out[I] = x; x += k & 1 ? ends(k + x) : 1; } }
KERNEL many(u32 *out, u32 n) {
    for (u32 k = 0; k < n * 40; ++k) {
        u32 x = k * 2654435761u >> 16;
"""
PROGRAM += "".join(f"if (x & {1 << bit}) {{ x = x * 5 + {bit}; out[I] += x; }}\n" for bit in range(16)) + "}}\n"
CLOSING = Ending.RETURN, Ending.TAIL_CALL, Ending.END


def compiled(clang: str, folder: Path, target: str, wave_size: int, *more: str) -> bytes:
    """The program; made once in a folder."""
    source, out = folder / "calls.hip", folder / f"{target}-{wave_size}{''.join(more)}.co"
    if not out.exists():
        source.write_text(PROGRAM)
        size = ["-mwavefrontsize64"] * (wave_size == 64 and target.startswith("gfx1"))
        subprocess.run([clang, *OPTIONS, f"--offload-arch={target}", *size, *more, source, "-o", out], check=True)
    return out.read_bytes()


def launched(kernel: str) -> Launch:
    """Of one of its kernels."""
    return Launch(kernel, (2, 1, 1), (128, 1, 1), (parse_argument("out:u32[256]"), parse_argument("u32=5")))


class Ran:
    """A record."""

    wave: u32
    left: u32
    block: u64


class Trace(Tool):
    """Each block of each wave, and where a function is left."""

    blocks = Channel(Ran)

    @hook(lanes="one")
    def ran(out: channel[Ran], wave: u32, left: u32, block: u64) -> None:
        push(out, wave, left, block)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for block in m.blocks(function):
                m.at_block(block, self.ran, self.blocks, wave_in_launch(), 0, block.address)
                if block.ending in CLOSING:
                    m.before(block.instrs[-1], self.ran, self.blocks, wave_in_launch(), 1, block.address)

    def received(self, channel, launch, records) -> None:
        for wave, *step in zip(*(records[name].tolist() for name in ("wave", "left", "block")), strict=True):
            self.gathered.setdefault(wave, []).append(step)


@dataclass(frozen=True, slots=True)
class Step:
    """A block that ran. ``active``: its function is the last one. ``caller``: who has just called that."""

    active: tuple[Function, ...]
    block: Block
    entered: bool
    caller: Function | None


def walks(code: bytes, launch: Launch) -> tuple[Program, list[list[Step]]]:
    """Of each wave."""
    tool = Trace()
    made = instrument(code, tool, kernels=launch.kernel)
    run_instrumented(EmulatorDevice(load(code).target), made, tool, launch)
    return made.program, [list(walk(made.program, blocks)) for blocks in tool.gathered.values()]


def walk(program: Program, trace: list[list[int]]) -> Iterator[Step]:
    blocks = {block.address: block for function in program.functions for block in function.blocks}
    active, tail = list[Function](), None
    for leaves, block in ((leaves, blocks[address]) for leaves, address in trace):
        if leaves:
            function = active.pop()
            tail = function if block.ending is Ending.TAIL_CALL else None
            continue
        function = program.function_of(block.instrs[0])
        entered = not active or active[-1] is not function
        caller = (tail or (active[-1] if active else None)) if entered else None
        active += [function] * entered
        tail = None
        yield Step(tuple(active), block, entered, caller)
