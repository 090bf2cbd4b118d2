"""What a memory instruction accesses: how its addresses are made of operands, how many bytes, and what is done there.

In: an instruction. Out: a MemoryAccess, or None for what accesses no memory. Sources: AMD Instinct MI200 ISA, chapters
8 to 11; CDNA 3 ISA, chapters 9 and 10 (scratch with two registers, loads to LDS). Invariant: it says nothing of
addresses that are made in other ways (images, M0 as the address): there `form` is OTHER. Targets differ in how
resources are read, not in which operands have them. Widths are those of the meanings of `semantics`, and None where
these have none.
"""

from __future__ import annotations

from luthier_py.base.records import replace
from luthier_py.isa import semantics
from luthier_py.isa.encoding.instruction import MOVES, SRC_NULL, Inst, Operand, OperandKind, OpFlag, OpInfo, Space
from luthier_py.isa.properties.memory_access import AccessKind, AddressForm, MemoryAccess
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.lds import ExchangeTwo, LoadToLds, LoadTwo, Permute, StoreTwo
from luthier_py.isa.semantics.memory import Atomic, Load, ScalarAtomic, ScalarLoad, ScalarStore, Store
from luthier_py.isa.semantics.transfers import LdsCopy

_UNITS = OpFlag.VMEM | OpFlag.SMEM | OpFlag.LDS
_BUFFERS = "MUBUF", "MTBUF"
_PAIRS = LoadTwo, StoreTwo, ExchangeTwo
_OTHER_WAYS = ("gds", "lds_direct")  # modifiers that change what an address is made of, or of what
_SCALE_OFFSET = 1 << 11  # of the cache policy


_COUNTING = (AddressForm.NEAR, AddressForm.SCRATCH, AddressForm.SCALAR)


def memory_access(inst: Inst) -> MemoryAccess | None:
    """What ``inst`` accesses."""
    op = inst.op
    row = semantics.find_meaning(op)
    if not (op.flags & _UNITS and op.flags & MOVES and op.spaces) or isinstance(row, Permute):
        return None
    stride = row.stride if isinstance(row, _PAIRS) else 0
    if stride:
        offsets = tuple(inst[name].value * stride for name in ("offset0", "offset1"))
    else:
        offset = inst.find("offset")
        offsets = (0 if offset is None else offset.value,)
    access = MemoryAccess(_kind(op), op.spaces, AddressForm.OTHER, _bytes(row), offsets)
    if any(operand.value for operand in inst.operands if operand.name in _OTHER_WAYS):
        return access
    unit = row.unit if isinstance(row, (ScalarLoad, ScalarStore, ScalarAtomic)) else 1
    if scales_offset(inst):
        if access.bytes is None:
            return access
        unit = access.bytes
    found = _with_address(inst, access)
    if unit == 1:
        return found
    return replace(found, unit=unit, form=found.form if found.form in _COUNTING else AddressForm.OTHER)


def scales_offset(inst: Inst) -> bool:
    """Whether an offset in a register counts elements."""
    policy = inst.find("cpol")
    return policy is not None and bool(policy.value & _SCALE_OFFSET)


def _kind(op: OpInfo) -> AccessKind:
    if OpFlag.ATOMIC in op.flags or op.flags & OpFlag.ATOMIC_RETURN:
        return AccessKind.ATOMIC
    return AccessKind.STORE if OpFlag.MAY_STORE in op.flags and OpFlag.MAY_LOAD not in op.flags else AccessKind.LOAD


def _bytes(row: object) -> int | None:
    if isinstance(row, (Load, Store, Atomic, LoadToLds, LdsCopy, ScalarLoad, ScalarStore, ScalarAtomic)):
        return row.bytes
    return 4 * row.dwords if isinstance(row, (*_PAIRS, TransposedLoad)) else None


def _with_address(inst: Inst, access: MemoryAccess) -> MemoryAccess:
    op, named = inst.op, _map_operands(inst)
    form, base, vector, scalar = AddressForm.OTHER, None, named.get("vaddr"), named.get("soffset")
    indexed = offset_enabled = False
    if OpFlag.SMEM in op.flags:
        base = named.get("sbase")
        wide = base is not None and base.reg is not None and base.reg.dwords == 4
        form = form if base is None else AddressForm.SCALAR_BUFFER if wide else AddressForm.SCALAR
    elif OpFlag.LDS in op.flags:
        vector = named.get("addr")
        form = form if vector is None else AddressForm.LDS
    elif op.format in _BUFFERS:
        base = named.get("srsrc")
        indexed, offset_enabled = _buffer_parts(inst, vector)
        form = form if base is None else AddressForm.BUFFER
    elif OpFlag.FLAT not in op.flags:
        vector = scalar = None
    elif access.spaces & Space.GLOBAL:
        base = named.get("saddr")
        form = AddressForm.OTHER if vector is None else AddressForm.FAR if base is None else AddressForm.NEAR
    else:
        form, scalar = AddressForm.SCRATCH, named.get("saddr")
    return MemoryAccess(access.kind, access.spaces, form, access.bytes, access.offsets, base, vector, scalar, indexed,
                        offset_enabled)


def _map_operands(inst: Inst) -> dict[str, Operand]:
    """Operands that are there, by name: null adds nothing to an address."""
    return {operand.name: operand for operand in inst.operands if operand.kind is not OperandKind.ABSENT
            and not (operand.kind is OperandKind.SPECIAL and operand.value in SRC_NULL)}


def _buffer_parts(inst: Inst, vector: Operand | None) -> tuple[bool, bool]:
    """Whether vaddr has an index and an offset: the row's name says it (LLVM's MUBUF records)."""
    if vector is None or vector.reg is None:
        return False, False
    both = vector.reg.dwords == 2
    return both or "IDXEN" in inst.op.record, both or "OFFEN" in inst.op.record
