"""What one instruction costs in the cycle model: its kind of work, and the cycles of that.

In: a target, a wave size, a decoded instruction. Out: an InstructionCost, of what the instruction alone decides; banks
and lines, which addresses decide, are added by the cycle model's callers. Source: isa/timing/cycles. Invariant: every
instruction has a cost; what the model does not list takes one step, and elements of matrices that it has no rate for
the slowest.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.model.target import Target
from luthier_py.isa.properties.accesses import memory_access
from luthier_py.isa.properties.classes import InstructionClass, class_of
from luthier_py.isa.semantics import Lanes, Scalar, Signature, find_meaning
from luthier_py.isa.semantics.algebra import Kind
from luthier_py.isa.semantics.matrix import Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.meaning import Variants
from luthier_py.isa.semantics.wave_matrices import GROUP, WaveMatrix, WaveMixedMatrix
from luthier_py.isa.timing.cycles import CycleModel, Pipe, Work, cycle_model

_PASS = 4  # cycles (CDNA 3 ISA, 7.1)
_MULTIPLICATIONS = frozenset("""V_MUL_LO_U32 V_MUL_LO_I32 V_MUL_HI_U32 V_MUL_HI_I32 V_MAD_U64_U32 V_MAD_I64_I32
V_MAD_CO_U64_U32 V_MAD_CO_I64_I32""".split())  # LLVM's WriteIntMul
_IDLE, _SLEEP, _SLEEP_CYCLES = "S_NOP", "S_SLEEP", 64  # MI200 ISA, 12.5; LLVM, GCNSubtarget::getSNopBits


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """Cycles of one instruction of one wave."""

    work: Work
    held: int          # until the wave can issue its next
    ready: int         # from the issue until its results can be read
    chained: int       # the same for a matrix instruction that only accumulates on its result
    pipe: Pipe | None  # what it holds meanwhile, for others too

    def times(self, factor: int) -> InstructionCost:
        """The cost with all cycles multiplied by ``factor``."""
        return InstructionCost(self.work, self.held * factor, self.ready * factor, self.chained * factor, self.pipe)


def cost_of(target: Target, inst: Inst, wave_size: int) -> InstructionCost:
    """The cost of ``inst``; of accesses, without what addresses decide."""
    model, work = cycle_model(target), work_of(inst)
    if work is Work.MATRIX:
        held = _matrix_cycles(model, inst)
        return InstructionCost(work, held, held + model.matrix_extra, held, Pipe.MATRIX)
    if work in _UNITS:
        return InstructionCost(work, model.step, model.step, model.step, None)
    held, ready = model.compute_timing(work, wave_size)
    if inst.op.base in (_IDLE, _SLEEP):
        count = inst["simm16"].value & (0xF if inst.op.base == _IDLE and target.generation < 12 else 0x7F)
        held = (count + 1) * model.step if inst.op.base == _IDLE else max(count * _SLEEP_CYCLES, model.step)
        return InstructionCost(Work.OTHER, held, held, held, None)
    return InstructionCost(work, held, ready, ready, _PIPES.get(work, Pipe.VECTOR))


def least_access(target: Target, inst: Inst, wave_size: int) -> tuple[int, int]:
    """Cycles in which an access is served whose addresses are as good as can be, and the latency behind that; 0 of what
    no counter counts."""
    model, work, access = cycle_model(target), work_of(inst), memory_access(inst)
    moved = wave_size * ((access.total_bytes if access is not None else None) or 0)
    if not inst.op.counters:
        return 0, 0
    if work is Work.LDS:
        return max(-(-moved // model.lds_bytes), 1), model.lds_latency
    if work is Work.VECTOR_MEMORY:
        return max(-(-moved // model.memory_bytes), -(-wave_size // model.address_lanes)), model.memory_latency
    return 1, model.scalar_latency


_UNITS = (Work.SCALAR_MEMORY, Work.VECTOR_MEMORY, Work.LDS)
_PIPES = {Work.SCALAR: Pipe.SCALAR, Work.SCALAR_FLOAT: Pipe.SCALAR, Work.BRANCH: None, Work.OTHER: None}


def work_of(inst: Inst) -> Work:
    """What ``inst`` is to the model."""
    flags, row = inst.op.flags, find_meaning(inst.op)
    for flag, work in _BY_FLAG:
        if flags & flag:
            return work
    found = row.typical.signature if isinstance(row, Variants) else (
        row.signature if isinstance(row, (Lanes, Scalar)) else None)
    if flags & OpFlag.VALU:
        return _vector_work(inst, found)
    if class_of(inst.op) is not InstructionClass.SCALAR_ALU:
        return Work.OTHER
    floats = found is not None and any(part.type.kind is Kind.FLOAT for part in (*found.sources, *found.results))
    return Work.SCALAR_FLOAT if floats else Work.SCALAR


_BY_FLAG = (
    (OpFlag.MATRIX, Work.MATRIX), (OpFlag.LDS | OpFlag.GDS, Work.LDS), (OpFlag.VMEM, Work.VECTOR_MEMORY),
    (OpFlag.SMEM, Work.SCALAR_MEMORY), (OpFlag.BRANCH | OpFlag.INDIRECT | OpFlag.CALL, Work.BRANCH),
    (OpFlag.WAIT | OpFlag.BARRIER | OpFlag.END | OpFlag.EXPORT, Work.OTHER),
)


def _vector_work(inst: Inst, found: Signature | None) -> Work:
    types = [] if found is None else [part.type for part in (*found.sources, *found.results)]
    double = any(type.kind is Kind.FLOAT and type.bits == 64 for type in types)
    if inst.op.flags & OpFlag.TRANS:
        return Work.TRANSCENDENTAL_DOUBLE if double else Work.TRANSCENDENTAL
    if double:
        return Work.DOUBLE
    if inst.op.base in _MULTIPLICATIONS:
        return Work.MULTIPLY
    return Work.WIDE if any(type.bits == 64 for type in types) else Work.VECTOR


def _matrix_cycles(model: CycleModel, inst: Inst) -> int:
    row = find_meaning(inst.op)
    if isinstance(row, MixedMatrix):
        row = row.of(*((operand.value if operand else 0) for operand in map(inst.find, ("cbsz", "blgp"))))
    if isinstance(row, SparseMatrix):  # half of the products are none
        return _by_rate(model, row.matrix.kind, row.matrix.rows * row.matrix.columns * row.matrix.depth)
    if isinstance(row, Matrix):
        if row.kind == "f64" and row.rows == 4:
            return 4 * _PASS  # LLVM: Write4PassDGEMM
        if row.blocks > 1 or not model.matrix_rates:
            return model.passes.get(row.rows, 1) * _PASS
        return max(_by_rate(model, kind, 2 * row.rows * row.columns * row.depth) for kind in row.kinds)
    if isinstance(row, WaveMixedMatrix):
        formats = map(inst.find, ("matrix_a_fmt", "matrix_b_fmt"))
        row = row.of(*((operand.value if operand else 0) for operand in formats))
    if not isinstance(row, WaveMatrix):
        return model.step
    operations = row.rows * GROUP * row.depth * (1 if row.sparse else 2)
    return max(_by_rate(model, kind.replace("iu", "i"), operations) for kind in row.kinds)


def _by_rate(model: CycleModel, kind: str, operations: int) -> int:
    rate = model.matrix_rates.get(kind, min(model.matrix_rates.values(), default=64))
    return max(-(-operations // rate), model.step)
