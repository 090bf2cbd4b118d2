"""How long does instrumentation take? Stage by stage, on a kernel of some 5,000 instructions.

In: nothing; the kernel is put together here from blocks as compilers make them. Out: a table on stdout. Hooks are
compiled before the clock starts, since their code is kept on disk between runs.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from luthier_py import Mutator, Tool, Variable, WaveVariable, hook, ptr, u64
from luthier_py.analysis import analyse
from luthier_py.inject.apply import inject
from luthier_py.inject.patch import Chunk, NewKernel, Patch
from luthier_py.intrinsics import atomic_add
from luthier_py.ir import lift
from luthier_py.isa import EXEC, VCC, instruction_set, sgpr, target, vgpr
from luthier_py.jit import compile_hooks
from luthier_py.link import link
from luthier_py.loader import load
from luthier_py.proof import prove
from luthier_py.samples import sample
from luthier_py.tool import Place, visit

BLOCKS = 500
STAGES = ("load", "lift", "analyse", "visit", "inject", "link", "check")


class Counting(Tool):
    """Counts in scalar registers, or with one atomic at each place."""

    total = Variable(u64)
    count = WaveVariable(u64)

    @hook
    def add(count: u64) -> u64:
        return count + u64(1)

    @hook(lanes="one")
    def flush(total: ptr[u64], count: u64) -> None:
        atomic_add(total, count)

    @hook(lanes="one")
    def bump(total: ptr[u64]) -> None:
        atomic_add(total, u64(1))

    def __init__(self, each: bool, atomics: bool) -> None:
        super().__init__()
        self.each, self.atomics = each, atomics

    def instrument(self, m: Mutator) -> None:
        for block in (block for function in m.functions() for block in function.blocks):
            for instr in block.instrs if self.each else block.instrs[:1]:
                if self.atomics:
                    m.before(instr, self.bump, self.total)
                else:
                    m.before(instr, self.add, self.count, into=self.count)
        if not self.atomics:
            for kernel in m.kernels:
                m.at_exit(kernel, self.flush, self.total, self.count)


@dataclass(slots=True)
class Clock:
    """Seconds by stage (mutable: adds up)."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def kernel() -> bytes:
    """An object with a kernel of BLOCKS `if`s: loads, waits, vector and scalar arithmetic, EXEC saved and put back."""
    isa = instruction_set(target("gfx90a"))
    exec_mask, vcc = sgpr(EXEC, 2), sgpr(VCC, 2)
    block = b"".join(inst.raw for inst in (
        isa.make("v_cmp_lt_u32_e32", vcc, vgpr(2), vgpr(3)), isa.make("s_and_saveexec_b64", sgpr(8, 2), vcc),
        isa.make("s_cbranch_execz", 7), isa.make("global_load_dword", vgpr(4), vgpr(2, 2), "off"),
        isa.make("s_add_u32", sgpr(10), sgpr(10), 1), isa.make("s_waitcnt", 0),
        isa.make("v_add_u32", vgpr(5), vgpr(4), vgpr(5)), isa.make("v_mul_lo_u32", vgpr(3), vgpr(5), sgpr(10)),
        isa.make("s_or_b64", exec_mask, exec_mask, sgpr(8, 2)), isa.make("v_xor_b32", vgpr(2), vgpr(3), vgpr(2)),
    ))
    base = load(sample("vector_add").path.read_bytes())
    like = base.kernels[0]
    code = block * BLOCKS + isa.make("s_endpgm").raw
    return link(base, Patch((Chunk("ifs", code),), (NewKernel("ifs", "ifs", like.descriptor, like.name),), ()))


def measure(code: bytes, tool: Tool) -> tuple[Clock, int, int]:
    """Seconds by stage, instructions and sites."""
    clock = Clock()
    with clock.stage("load"):
        obj = load(code)
    with clock.stage("lift"):
        program = lift(obj, ["ifs"])
    with clock.stage("analyse"):
        facts = analyse(program)
        facts.live_before(program.functions[0].blocks[0].instrs[0])
    with clock.stage("visit"):
        edits = visit(tool, program, facts)
        facts = facts.with_reads(edits.reads(Place.BEFORE), edits.reads(Place.AFTER))
    payloads = compile_hooks(edits, program.isa)
    with clock.stage("inject"):
        patched = inject(program, facts, edits, payloads)
    with clock.stage("link"):
        data = link(obj, Patch(patched.chunks, patched.kernels, patched.variables))
    with clock.stage("check"):
        prove(code, data, patched.claim)
    return clock, sum(1 for _ in program.functions[0].instrs), len(edits.insertions)


def main() -> None:
    code = kernel()
    measure(code, Counting(False, False))  # tables are read, code is warm
    print(f"seconds on {platform.machine()}, Python {platform.python_version()}, one thread")
    print(f"{'':34}{'sites':>7}" + "".join(f"{stage:>9}" for stage in STAGES) + f"{'all':>9}")
    for each in (False, True):
        for atomics in (False, True):
            clock, instructions, sites = measure(code, Counting(each, atomics))
            what = f"{'every instruction' if each else 'every block'}, {'atomic' if atomics else 'wave variable'}"
            cells = [clock.seconds[stage] for stage in STAGES]
            print(f"{what:34}{sites:7}" + "".join(f"{cell:9.2f}" for cell in (*cells, sum(cells))))
    print(f"the kernel has {instructions} instructions")


if __name__ == "__main__":
    main()
