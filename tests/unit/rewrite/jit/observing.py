"""Hooks as they run, on the emulator: at the entry of the vector-add sample, one wave of it, in as many lanes as the
work-group has items. There v0 holds the work-item's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from luthier_py.binary.link import Patch, link
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import pack_arguments
from luthier_py.isa import Target, vgpr
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import lift
from luthier_py.rewrite.inject.apply import inject
from luthier_py.rewrite.jit import compile_hooks
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Hook, Mutator, Tool, Variable, u32, visit

KERNEL = Path(__file__).resolve().parents[3] / "data" / "vector_add.co"
LANES = 64


class Launched:
    """One launch of what was instrumented."""

    def __init__(self, target: Target, data: bytes, clone: str, lanes: int) -> None:
        self.emulator = EmulatorDevice(target)
        self.module = self.emulator.load(data)
        handle = self.module.kernel(clone)
        buffers = [self.emulator.alloc(4 * LANES) for _ in range(3)]
        kernarg = pack_arguments(handle.record, [b.address for b in buffers], (1, 1, 1), (lanes, 1, 1))
        self.emulator.launch(handle, (1, 1, 1), (lanes, 1, 1), kernarg)

    def __getitem__(self, variable: Variable) -> object:
        place = self.module.variable(variable.name)
        return variable.decode(self.emulator.read(place.address, place.size))


def launch(tool: Tool, lanes: int) -> Launched:
    """The sample under a tool, proved."""
    made = instrument(KERNEL, tool)
    return Launched(made.obj.target, made.data, made.patched.report[0].clone, lanes)


def observe(hooks: Sequence[Hook], lanes: int, words: int) -> tuple[int, ...]:
    """Call every hook as ``hook(out, work-item number)`` at kernel entry; what they left in ``out``. Nothing is proved:
    of loops that differ between lanes, that is not always possible."""
    out = Variable(u32, words, name="observed")

    class Observer(Tool):
        def instrument(self, m: Mutator) -> None:
            for one in hooks:
                m.at_entry(m.kernels[0], one, out, vgpr(0))

    program = lift(load(KERNEL.read_bytes(), KERNEL.name))
    facts = analyse(program)
    edits = visit(Observer(), program, facts)
    patched = inject(program, facts, edits, compile_hooks(edits, program.isa))
    data = link(program.obj, Patch(patched.chunks, patched.kernels, patched.variables))
    found = Launched(program.obj.target, data, patched.report[0].clone, lanes)[out]
    assert isinstance(found, tuple)
    return found
