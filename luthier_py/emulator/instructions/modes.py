"""MODE through a function: how floats round, and which denormals are zeros, is known when code is generated.

In: the blocks of a function and MODE at its entry. Out: the values of MODE at the start of each block, which has code
for each of them, and what a value means for an instruction. Immediate writes are followed; one from a register is
taken to bring back a value that MODE had before in the function, which is looked at when it runs. Bits that mean
something else are Unsupported. Source: AMD Instinct MI200 ISA, 3.4 (Mode register).
"""

from __future__ import annotations

from luthier_py.base.errors import Location, Unsupported
from luthier_py.base.records import dataclass
from luthier_py.emulator.reading.discover import CodeBlock
from luthier_py.emulator.vector_regions.rounding import Arithmetic, Rounding
from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.model.target import Target
from luthier_py.isa.properties.vector_modes import compute_written_bank_bits
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import F16, F32, F64, Type
from luthier_py.isa.semantics.control import Action, HardwareRegister
from luthier_py.isa.semantics.meaning import Lanes, Scalar
from luthier_py.isa.semantics.refusals import WhyRefused

_ROUND_F32, _ROUND_F16_F64 = 0, 2      # first bits of two; MODE[3:0]
_DENORMAL_F32, _DENORMAL_F16_F64 = 4, 6  # of sources, and of results in the bit above; MODE[7:4]
_DX10_CLAMP, _IEEE, _FP16_OVFL = 8, 9, 23
MOST_VERSIONS = 8  # of a block
REPLAYS = 1 << 25  # which instructions XNACK replays; has no effect here
_FOLLOWED = 0xFF | 1 << _DX10_CLAMP | 1 << _IEEE | 1 << _FP16_OVFL


@dataclass(frozen=True, slots=True)
class Mode:
    """The register's value, and what it means for vector instructions. ``has_clamp``: it has DX10_CLAMP and IEEE; where
    it has not, NaN is clamped and IEEE mode is off."""

    bits: int
    has_clamp: bool = True

    def flushes_sources(self, type: Type) -> bool:
        """Whether denormals of a float type are read as zeros."""
        return not self.bits >> _denormals(type) & 1

    def flushes_results(self, type: Type) -> bool:
        """Whether denormal results of a float type are written as zeros."""
        return not self.bits >> _denormals(type) + 1 & 1

    @property
    def clamps_nan(self) -> bool:
        """Whether clamp makes NaN 0; else it stays."""
        return not self.has_clamp or bool(self.bits >> _DX10_CLAMP & 1)

    @property
    def ieee(self) -> bool:
        """Whether signaling NaNs are quieted (MODE.IEEE; AMDGPUUsage, ENABLE_IEEE_MODE); off on targets without the
        bit."""
        return self.has_clamp and bool(self.bits >> _IEEE & 1)

    @property
    def keeps_finite(self) -> bool:
        """Whether finite numbers too large for 16 bits or less become the largest one, not infinity."""
        return bool(self.bits >> _FP16_OVFL & 1)

    def arithmetic(self, inst: Inst, row: Lanes | Scalar) -> Arithmetic:
        """How ``inst`` rounds: f64 and f16 have bits of their own, and results decide, but for f64 to f32 (LLVM,
        SIModeRegister::getInstructionMode). Transcendentals are within one unit in the last place in any mode.
        """
        results, sources = ({slot.type for slot in slots} for slots in (row.signature.results, row.signature.sources))
        first = _ROUND_F16_F64 if {F16, F64} & results or F64 in sources else _ROUND_F32
        rounding = Rounding(self.bits >> first & 3)
        if OpFlag.TRANS in inst.op.flags:
            rounding = Rounding.NEAREST
        if OpFlag.DOT in inst.op.flags and F32 in results and rounding is not Rounding.NEAREST:
            raise Unsupported(f"{inst.op.mnemonic} with rounding other than to nearest even")
        return Arithmetic(rounding, self.keeps_finite)


def _denormals(type: Type) -> int:
    return _DENORMAL_F32 if type == F32 else _DENORMAL_F16_F64


def hardware_register(inst: Inst) -> tuple[int, int, int]:
    """(number, first bit, bits) of an s_getreg or s_setreg."""
    control = inst["simm16"].value
    return control & 63, control >> 6 & 31, (control >> 11 & 31) + 1


def mode_after(inst: Inst, mode: int, target: Target) -> int:
    """MODE after one instruction."""
    row = find_meaning(inst.op)
    if row not in _WRITES:
        return mode
    if row is Action.ROUND_MODE:
        return mode & ~0xF | inst["simm16"].value & 0xF
    if row is Action.DENORM_MODE:
        return mode & ~0xF0 | (inst["simm16"].value & 0xF) << 4
    number, first, _ = hardware_register(inst)
    if number != HardwareRegister.MODE.value:
        return mode
    if banks := compute_written_bank_bits(target, inst):
        raise Unsupported(f"MODE bits 0x{banks:x} of its immediate: {_RENAMED.reason}; {_RENAMED.advice}")
    mask = compute_written_bits(inst)
    after = mode & ~mask | inst["imm"].value << first & mask & ~REPLAYS
    if (after ^ mode) & ~_FOLLOWED:
        raise Unsupported(f"MODE bits 0x{(after ^ mode) & ~_FOLLOWED:x}: of MODE rounding, denormals, DX10_CLAMP, IEEE "
                          "and FP16_OVFL can be changed")
    return after


_RENAMED = WhyRefused.RENAMED
_WRITES = (Action.SETREG, Action.SETREG_IMM, Action.ROUND_MODE, Action.DENORM_MODE)


def modes(blocks: list[CodeBlock], entry: int, initial: int, target: Target) -> dict[int, tuple[int, ...]]:
    """All values that MODE has at the start of each block that can be reached."""
    by_start = {block.start: block for block in blocks}
    if not any(find_meaning(inst.op) in _WRITES for block in blocks for _, inst in block.insts):
        return dict.fromkeys(by_start, (initial,))
    found, known = {entry: {initial}}, {initial}
    before = 0
    while before != (before := len(known) + sum(map(len, found.values()))):
        for block in blocks:
            after: set[int] = set()
            for mode in found.get(block.start, ()):
                after |= _through(block, mode, known, target)
            for following in _successors(block) if after else ():
                if following in by_start:
                    found.setdefault(following, set()).update(after)
                    if len(found[following]) > MOST_VERSIONS:
                        what = f"MODE can have more than {MOST_VERSIONS} values here"
                        raise Unsupported(what, Location(None, following))
    return {start: tuple(sorted(values)) for start, values in found.items()}


def _through(block: CodeBlock, mode: int, known: set[int], target: Target) -> set[int]:
    """MODE after the block; ``known`` collects every value on the way, which a register may hold and bring back."""
    for pc, inst in block.insts:
        if sets_from_register(inst):  # the last one: see discover
            mask = compute_written_bits(inst)
            return {mode & ~mask | value & mask for value in known}
        mode = _compute_mode_after(inst, pc, mode, target)
        known.add(mode)
    return {mode}


def sets_from_register(inst: Inst) -> bool:
    """Whether it is an S_SETREG_B32 of MODE, whose value is not known when code is generated."""
    return find_meaning(inst.op) is Action.SETREG and hardware_register(inst)[0] == HardwareRegister.MODE.value


def compute_written_bits(inst: Inst) -> int:
    """Of MODE, by an s_setreg."""
    _, first, size = hardware_register(inst)
    return ((1 << size) - 1) << first


def _compute_mode_after(inst: Inst, pc: int, mode: int, target: Target) -> int:
    try:
        return mode_after(inst, mode, target)
    except Unsupported as error:
        raise Unsupported(error.message, Location(None, pc, inst.op.mnemonic)) from None


def _successors(block: CodeBlock) -> list[int]:
    pc, last = block.insts[-1]
    flags = last.op.flags
    if OpFlag.CALL in flags:
        return [block.end]
    if flags & (OpFlag.END | OpFlag.INDIRECT):
        return []
    taken = [last.branch_target(pc) or 0] if OpFlag.BRANCH in flags else []
    falls = OpFlag.BRANCH not in flags or OpFlag.CONDITIONAL in flags
    return [*taken, block.end] if falls else taken
