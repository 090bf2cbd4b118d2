"""Payloads: compiled hooks, ready to be inlined; and the keys that find them.

In: nothing; `compile_hooks` makes these. Out: data for inject. Invariant: a payload falls off its end, all its
branches stay inside or lead to its end, and ``writes`` is everything that it may change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from luthier_py.isa import Inst, Reg, RegSet
from luthier_py.tool import Constant, Hook, Insertion


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a parameter is expected, or a result is left."""

    reg: Reg        # in the payload's own numbering
    uniform: bool   # in SGPRs, one for the wave; else in VGPRs


@dataclass(frozen=True, slots=True)
class PayloadKey:
    """What a payload depends on, within one target: the hook and its compile-time arguments."""

    hook: Hook
    constants: tuple[Constant | None, ...]
    text: str = field(init=False, repr=False)  # of the constants: 0.0 and -0.0 are equal, but not the same

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", repr(self.constants))


@dataclass(frozen=True, slots=True)
class Payload:
    """Instructions of one hook with some constants, in registers that inject renames."""

    instrs: tuple[Inst, ...]
    params: tuple[Slot, ...]    # of the arguments that are not constants, in order
    results: tuple[Slot, ...]
    reads: RegSet
    writes: RegSet
    needs_lane: bool            # its scalar results or branches are wrong when no lane is active
    frame_bytes: int = 0        # of stack


def payload_key(insertion: Insertion) -> PayloadKey:
    return PayloadKey(insertion.hook, insertion.constants)
