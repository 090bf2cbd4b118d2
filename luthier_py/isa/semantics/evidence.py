"""What each meaning is tested against.

In: a row of a target's table. Out: :class:`Tested`. Invariant: it is what the tests do, since they ask here: the
campaigns of tests/reference run every row of COMPARED that is to be compared, no other, and fail where no case of one
could be made; a test looks whether each file of ELSEWHERE names the instruction.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import cache

from luthier_py.base.records import dataclass
from luthier_py.isa.by_target import InstructionSet, instruction_set
from luthier_py.isa.encoding.instruction import OpInfo
from luthier_py.isa.model.target import target
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action, Indexing, Switch
from luthier_py.isa.semantics.meaning import Meaning
from luthier_py.isa.semantics.memory import Load, Store
from luthier_py.isa.semantics.refusals import refusal

COMPARED = ("gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010/32", "gfx1030/32",
            "gfx1030", "gfx1100/32", "gfx1100", "gfx1151/32", "gfx1201/32", "gfx1201", "gfx1250/32")
"""Targets whose rows are compared with the reference reader, with the size of a wave where that is not 64."""

_WAITING, _ENDS, _BARRIERS, _MODES = (f"unit/{name}.py" for name in (
    "emulator/test_waiting", "emulator/test_block_ends", "emulator/test_barriers", "isa/semantics/test_modes"))
# Meanings that a straight run of instructions in one wave cannot show, and the file under tests that does.
ELSEWHERE: dict[Meaning, str] = {
    # The wave gives way.
    Action.END: _ENDS, Action.BARRIER: _WAITING, Action.GWS_BARRIER: _WAITING, Action.SLEEP: _ENDS,
    **dict.fromkeys((Action.BARRIER_SIGNAL, Action.BARRIER_SIGNAL_ISFIRST, Action.BARRIER_WAIT, Action.BARRIER_INIT,
                     Action.BARRIER_JOIN, Action.BARRIER_STATE, Action.SENDMSG_RTN, Action.ADD_PC), _BARRIERS),
    Action.TRAP: "unit/emulator/test_emulator_failures.py", Action.SENDMSG: "unit/emulator/test_packet_faults.py",
    Action.GWS_INIT: _WAITING,  # shows in what waits only
    **dict.fromkeys((Action.GWS_SEMA_V, Action.GWS_SEMA_P, Action.GWS_SEMA_RELEASE_ALL),
                    "unit/emulator/test_semaphores.py"),
    # Leave the function.
    Action.SETPC: _ENDS, Action.SWAPPC: _ENDS, Action.CALL: _ENDS,
    # No two readings are equal.
    Action.CLOCK: "unit/emulator/test_clocks.py", Action.WALL_CLOCK: "unit/emulator/test_clocks.py",
    Action.WAVE_ID: "unit/emulator/test_hardware_registers.py",  # a wave that is alone has number 0
    # Change what code means that follows.
    Action.SETREG: _MODES, Action.SETREG_IMM: _MODES, Action.ROUND_MODE: _MODES, Action.DENORM_MODE: _MODES,
    Indexing.ON: "unit/isa/semantics/test_lanes.py", Indexing.OFF: "unit/isa/semantics/test_lanes.py",
    Switch.SKIP: "unit/isa/semantics/test_crossings.py",
}  # fmt: skip


class Against(Enum):
    """What the tests compare a meaning with."""

    REFERENCE = auto()  # the reference reader, lane by lane and bit by bit, on this target
    ALIKE = auto()      # the same, on another target that has the operation
    TESTS = auto()      # what a file of tests works out by itself
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class Tested:
    """``where``: a target, or a file below tests."""

    against: Against
    where: str = ""

    def __str__(self) -> str:
        return {
            Against.REFERENCE: f"reference reader, {self.where}", Against.ALIKE: f"reference reader, on {self.where}",
            Against.TESTS: f"tests/{self.where}", Against.NOTHING: "nothing",
        }[self.against]


def compares(isa: InstructionSet, op: OpInfo) -> bool:
    """Whether a campaign of the reference reader on this target has the row."""
    row = find_meaning(op)
    return row is not None and row not in ELSEWHERE and refusal(op, isa.target) is None and not _is_untestable(op)


def _is_untestable(op: OpInfo) -> bool:
    if op.base == "S_CODE_END":  # padding behind code, which no wave comes to
        return True
    # Addresses below those that programs have.
    return isinstance(find_meaning(op), (Load, Store)) and op.base.startswith("GLOBAL_") and not (
        {"vaddr", "saddr"} & {operand.name for operand in op.operands})


def instructions(name: str) -> InstructionSet:
    """Of one of COMPARED."""
    gpu, _, size = name.partition("/")
    return instruction_set(target(gpu), int(size or 64))


def evidence(isa: InstructionSet, op: OpInfo) -> Tested:
    """What a row that is not refused is tested against."""
    row = find_meaning(op)
    if row in ELSEWHERE:
        return Tested(Against.TESTS, ELSEWHERE[row])
    if not compares(isa, op):
        return Tested(Against.NOTHING)
    name = isa.target.name
    if name in _names():
        return Tested(Against.REFERENCE, name)
    others = (each for each in _nearest(name) if op.base in _collect_compared(each))
    return next((Tested(Against.ALIKE, each.partition("/")[0]) for each in others), Tested(Against.NOTHING))


@cache
def _names() -> frozenset[str]:
    return frozenset(name.partition("/")[0] for name in COMPARED)


@cache
def _nearest(name: str) -> tuple[str, ...]:
    """COMPARED, those first whose version is most like this one's."""
    version = target(name)

    def distance(other: str) -> tuple[int, int]:
        theirs = target(other.partition("/")[0])
        return abs(theirs.generation - version.generation), abs(theirs.minor - version.minor)

    return tuple(sorted(COMPARED, key=distance))


@cache
def _collect_compared(name: str) -> frozenset[str]:
    """The operations of one of COMPARED that are."""
    isa = instructions(name)
    return frozenset(op.base for op in isa.ops if compares(isa, op))
