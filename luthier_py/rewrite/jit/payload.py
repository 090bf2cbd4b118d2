"""Payloads: compiled hooks, ready to be inlined; and the keys that find them.

In: nothing; `compile_hooks` makes these. Out: data for inject. Invariant: a payload falls off its end, all its
branches stay inside or lead to its end, and ``writes`` is everything that it may change.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass, field
from luthier_py.isa import Inst, Reg, RegSet, Space
from luthier_py.rewrite.jit.object import Code
from luthier_py.rewrite.tool import Arg, Constant, Field, Hook, Insertion, Scalar


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a parameter is expected, or a result is left."""

    reg: Reg        # in the payload's own numbering
    uniform: bool   # in SGPRs, one for the wave; else in VGPRs


@dataclass(frozen=True, slots=True)
class PayloadKey:
    """What a payload depends on, within one target: the hook and the constants that are compiled in."""

    hook: Hook
    constants: tuple[Constant | Field | None, ...]
    text: str = field(init=False, repr=False)  # of the constants: 0.0 and -0.0 are equal, but not the same

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", repr(self.constants))


@dataclass(frozen=True, slots=True)
class Hole:
    """The literal dword at the end of instruction number ``instr``: a half of the bits of a constant argument (the low
    one, or the ``high`` one), after ``added`` was added to them."""

    instr: int
    position: int  # of the parameter
    added: int
    high: bool

    def compute_dword(self, hook: Hook, args: tuple[Arg, ...]) -> int:
        """The dword in a call with these arguments."""
        type, number = hook.signature.parameters[self.position].type, args[self.position]
        assert isinstance(type, Scalar) and isinstance(number, (int, float))
        bits = int.from_bytes(type.pack(number), "little") + self.added
        return bits >> (32 if self.high else 0) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Payload:
    """Instructions of one hook with some constants, in registers that inject renames."""

    instrs: tuple[Inst, ...]
    params: tuple[Slot, ...]    # of the arguments that are not constants, in order
    results: tuple[Slot, ...]
    reads: RegSet
    writes: RegSet
    needs_lane: bool            # its scalar results or branches are wrong when no lane is active
    frame_bytes: int = 0        # of stack, in each lane
    stack: Reg | None = None    # where it expects the offset of that in private memory
    resource: Reg | None = None  # where it expects the resource of private memory, if it is in a buffer
    holes: tuple[Hole, ...] = ()
    source: Code | None = None  # what LLVM made, if it was made by it

    @property
    def needs_private_memory(self) -> bool:
        """Whether it touches any, the application's or its own."""
        return self.resource is not None or self.stack is not None and any(
            inst.op.spaces is Space.SCRATCH for inst in self.instrs)


def payload_key(insertion: Insertion) -> PayloadKey:
    """The key of the payload for an insertion: its hook, with those of its arguments that are compiled in."""
    return PayloadKey(insertion.hook, insertion.constants)
