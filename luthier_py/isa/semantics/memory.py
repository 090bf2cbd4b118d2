"""Global, flat, scratch, buffer and scalar memory: what is moved, as data.

In: nothing. Out: Load, Store, Atomic rows. How an address is made follows from the instruction's
format and operands (AMD Instinct MI200 ISA, chapters 8 and 9), and is its reader's business.
"""

from __future__ import annotations

from enum import Enum, auto

from luthier_py.base.records import dataclass, replace
from luthier_py.isa.semantics.algebra import F16, F32, U16, Kind, Value, concat, high_half, low_half, select
from luthier_py.isa.semantics.cdna4 import from_bf16, to_bf16
from luthier_py.isa.semantics.floats import flush_denormals, fmax, fmin, maximum_in, minimum_in
from luthier_py.isa.semantics.meaning import PLAIN, declare, rows


@dataclass(frozen=True, slots=True)
class Load:
    """Memory to vdst (sdst): ``dwords`` of 32 bits, or one element of less than 32 bits."""

    dwords: int = 1
    bits: int = 32
    signed: bool = False
    half: str = ""      # "low", "high": d16, into that half of the register; the other half stays
    by_lane: bool = False  # no address register: 4 times the lane's number is added (in LDS M0[15:0], too)
    status: bool = False   # TFE: a dword behind the data is written where the fetch is refused, which nothing here is

    @property
    def bytes(self) -> int:
        """The size in memory."""
        return self.dwords * self.bits // 8


@dataclass(frozen=True, slots=True)
class Store:
    """vdata (data0) to memory."""

    dwords: int = 1
    bits: int = 32
    half: str = ""      # "high": the element is in the high half of the register
    by_lane: bool = False  # as in Load
    status: bool = False

    @property
    def bytes(self) -> int:
        """Bytes that a lane stores."""
        return self.dwords * self.bits // 8


class Modify(Enum):
    """What an atomic leaves in memory, of the old value and the data."""

    ADD = auto()
    SUB = auto()
    RSUB = auto()     # data - old
    INC = auto()      # old >= data ? 0 : old + 1
    DEC = auto()      # old == 0 or old > data ? data : old - 1
    MIN = auto()      # by the kind; f: as V_MIN in IEEE mode (MI200 ISA, 9.5.3: a signalling NaN wins, others lose)
    MAX = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    SWAP = auto()
    COMPARE_SWAP = auto()  # old == compare ? data : old
    MASK_OR = auto()  # (old & ~data0) | data1
    WRAP = auto()     # old >= data0 ? old - data0 : old + data1
    CLAMPED_SUB = auto()      # old < data ? 0 : old - data
    CONDITIONAL_SUB = auto()  # old < data ? old : old - data
    MARKED_SWAP = auto()      # each dword of data whose highest bit is set, without that bit; else the old one


@dataclass(frozen=True, slots=True)
class Atomic:
    """Read-modify-write of one element in each lane, in lane order; returns the old value if OpFlag.ATOMIC_RETURN."""

    modify: Modify
    kind: str = "u"   # u, i, f, n: f where every NaN loses to a number, p: two packed f16, or b: two packed bfloat16
    bits: int = 32
    compare_first: bool = False  # DS_CMPST: data0 is compared with, data1 stored; elsewhere the other way round

    @property
    def bytes(self) -> int:
        """Bytes of the element in memory."""
        return self.bits // 8

    def where(self, numbers_win: bool) -> Atomic:
        """The row on a target where minima and maxima of floats are those of numbers, or are not."""
        extreme = self.kind == "f" and self.modify in (Modify.MIN, Modify.MAX)
        return replace(self, kind="n") if numbers_win and extreme else self


_NUMBERS_WIN = replace(PLAIN, numbers_win=True)


def extreme_number(modify: Modify, old: Value, data: Value) -> Value:
    """minimumNumber and maximumNumber, of data and the old value (RDNA 4 ISA, 16.15: DS_MIN_NUM_F32): kind n."""
    return (minimum_in if modify is Modify.MIN else maximum_in)(_NUMBERS_WIN)(data, old)


def apply_modify(modify: Modify, old: Value, data: Value, second: Value) -> Value:
    """What is left in memory; ``second`` is the value compared with, or the other operand. Of one type."""
    if modify is Modify.ADD:
        return old + data
    if modify is Modify.SUB:
        return old - data
    if modify is Modify.RSUB:
        return data - old
    if modify is Modify.INC:
        return select(old >= data, 0, old + 1)
    if modify is Modify.DEC:
        return select(old.eq(0) | (old > data), data, old - 1)
    if modify is Modify.MIN:
        return fmin(old, data) if old.type.kind is Kind.FLOAT else select(data < old, data, old)
    if modify is Modify.MAX:
        return fmax(old, data) if old.type.kind is Kind.FLOAT else select(data > old, data, old)
    if modify is Modify.AND:
        return old & data
    if modify is Modify.OR:
        return old | data
    if modify is Modify.XOR:
        return old ^ data
    if modify is Modify.SWAP:
        return data
    if modify is Modify.COMPARE_SWAP:
        return select(old.eq(second), data, old)
    if modify is Modify.MASK_OR:
        return (old & ~data) | second
    if modify is Modify.WRAP:
        return select(old >= data, old - data, old + second)
    if modify is Modify.CLAMPED_SUB:
        return select(old < data, 0, old - data)
    if modify is Modify.CONDITIONAL_SUB:
        return select(old < data, old, old - data)
    return concat(_exchange_if_marked(high_half(old), high_half(data)),
                  _exchange_if_marked(low_half(old), low_half(data)))


def _exchange_if_marked(old: Value, data: Value) -> Value:
    return select((data >> 31).ne(0), data & 0x7FFFFFFF, old)


def add_packed(kind: str, old: Value, data: Value) -> Value:
    """Two elements of 16 bits added each: ``p`` f16, ``b`` bfloat16; denormals stay. All are u32."""
    def one(a: Value, b: Value) -> Value:
        if kind == "p":
            return (a.as_(F16) + b.as_(F16)).as_(U16)
        return to_bf16(from_bf16(a) + from_bf16(b))

    return concat(one(high_half(old), high_half(data)), one(low_half(old), low_half(data)))


def apply_modify_flushing(modify: Modify, old: Value, data: Value, second: Value, flushes: tuple[bool, bool]) -> Value:
    """The same where the adder of f32 flushes denormals, of sources and of results: in LDS if MODE says so (LLVM, pull
    request 89468), in the L2 cache on some targets, whatever MODE says (MI200 ISA, 9.5.2). It rounds to nearest."""
    if modify is not Modify.ADD or old.type != F32:
        return apply_modify(modify, old, data, second)
    sources, results = flushes
    total = flush_denormals(old) + flush_denormals(data) if sources else old + data
    return flush_denormals(total) if results else total


WIDTHS = {"DWORD": 1, "DWORDX2": 2, "DWORDX3": 3, "DWORDX4": 4}
_NARROW = {"UBYTE": (8, False), "SBYTE": (8, True), "USHORT": (16, False), "SSHORT": (16, True)}
_D16 = {"UBYTE_D16": (8, False), "SBYTE_D16": (8, True), "SHORT_D16": (16, False)}
_ATOMICS = {
    "ADD": (Modify.ADD, "u"), "SUB": (Modify.SUB, "u"), "INC": (Modify.INC, "u"), "DEC": (Modify.DEC, "u"),
    "SMIN": (Modify.MIN, "i"), "SMAX": (Modify.MAX, "i"), "UMIN": (Modify.MIN, "u"), "UMAX": (Modify.MAX, "u"),
    "AND": (Modify.AND, "u"), "OR": (Modify.OR, "u"), "XOR": (Modify.XOR, "u"), "SWAP": (Modify.SWAP, "u"),
    "CMPSWAP": (Modify.COMPARE_SWAP, "u"),
}  # fmt: skip

for _space in "GLOBAL", "FLAT", "SCRATCH", "BUFFER":
    for _word, _count in WIDTHS.items():
        declare(f"{_space}_LOAD_{_word}", Load(_count))
        declare(f"{_space}_STORE_{_word}", Store(_count))
    for _word, (_bits, _signed) in _NARROW.items():
        declare(f"{_space}_LOAD_{_word}", Load(bits=_bits, signed=_signed))
    for _word, (_bits, _signed) in _D16.items():
        declare(f"{_space}_LOAD_{_word}", Load(bits=_bits, signed=_signed, half="low"))
        declare(f"{_space}_LOAD_{_word}_HI", Load(bits=_bits, signed=_signed, half="high"))
    for _word, _bits in ("BYTE", 8), ("SHORT", 16):
        declare(f"{_space}_STORE_{_word}", Store(bits=_bits))
        declare(f"{_space}_STORE_{_word}_D16_HI", Store(bits=_bits, half="high"))

for _name, _row in list(rows().items()):  # a copy: other modules declare rows meanwhile, in other threads
    if _name.startswith("BUFFER_") and isinstance(_row, Load | Store):
        declare(f"{_name}_TFE", replace(_row, status=True))

for _space in "GLOBAL", "FLAT", "BUFFER":
    for _word, (_modify, _kind) in _ATOMICS.items():
        declare(f"{_space}_ATOMIC_{_word}", Atomic(_modify, _kind))
        declare(f"{_space}_ATOMIC_{_word}_X2", Atomic(_modify, _kind, 64))
    declare(f"{_space}_ATOMIC_ADD_F32", Atomic(Modify.ADD, "f"))
    declare(f"{_space}_ATOMIC_PK_ADD_F16", Atomic(Modify.ADD, "p"))
    declare(f"{_space}_ATOMIC_PK_ADD_BF16", Atomic(Modify.ADD, "b"))
    declare(f"{_space}_ATOMIC_FMIN", Atomic(Modify.MIN, "f"))
    declare(f"{_space}_ATOMIC_FMAX", Atomic(Modify.MAX, "f"))
    declare(f"{_space}_ATOMIC_FCMPSWAP", Atomic(Modify.COMPARE_SWAP, "f"))
    declare(f"{_space}_ATOMIC_FCMPSWAP_X2", Atomic(Modify.COMPARE_SWAP, "f", 64))
    declare(f"{_space}_ATOMIC_CSUB{'_U32' if _space == 'FLAT' else ''}", Atomic(Modify.CLAMPED_SUB))
    declare(f"{_space}_ATOMIC_COND_SUB_U32", Atomic(Modify.CONDITIONAL_SUB))
    for _word, _modify in ("ADD", Modify.ADD), ("MIN", Modify.MIN), ("MAX", Modify.MAX):
        declare(f"{_space}_ATOMIC_{_word}_F64", Atomic(_modify, "f", 64))


@dataclass(frozen=True, slots=True)
class ScalarLoad:
    """``dwords`` from sbase + offsets to sdst; ``buffer``: sbase is a resource, out of whose range all reads 0. Of less
    than a dword ``bits`` are extended. ``unit``: bytes that soffset counts in."""

    dwords: int
    buffer: bool = False
    bits: int = 32
    signed: bool = False
    unit: int = 1

    @property
    def bytes(self) -> int:
        """Bytes that the wave loads."""
        return self.dwords * self.bits // 8


@dataclass(frozen=True, slots=True)
class ScalarStore:
    """``dwords`` of sdata to sbase + offsets; ``buffer`` and ``unit`` as in ScalarLoad."""

    dwords: int
    buffer: bool = False
    unit: int = 1

    @property
    def bytes(self) -> int:
        """Bytes that the wave stores."""
        return 4 * self.dwords


@dataclass(frozen=True, slots=True)
class ScalarAtomic:
    """Of sdata (and what it is compared with behind it); the old value to sdst, which is the same register then."""

    atomic: Atomic
    buffer: bool = False
    unit: int = 1

    @property
    def bytes(self) -> int:
        """Bytes of the element in memory."""
        return self.atomic.bytes


for _word, _bits in ("8", 8), ("16", 16):  # RDNA 4
    for _letter in "UI":
        declare(f"S_LOAD_{_letter}{_word}", ScalarLoad(1, bits=_bits, signed=_letter == "I"))
        declare(f"S_BUFFER_LOAD_{_letter}{_word}", ScalarLoad(1, buffer=True, bits=_bits, signed=_letter == "I"))
declare("S_LOAD_DWORDX3", ScalarLoad(3))
declare("S_BUFFER_LOAD_DWORDX3", ScalarLoad(3, buffer=True))
for _count in 1, 2, 4, 8, 16:
    _suffix = f"X{_count}" if _count > 1 else ""
    declare(f"S_LOAD_DWORD{_suffix}", ScalarLoad(_count))
    declare(f"S_BUFFER_LOAD_DWORD{_suffix}", ScalarLoad(_count, buffer=True))
    if _count <= 4:
        declare(f"S_STORE_DWORD{_suffix}", ScalarStore(_count))
        declare(f"S_BUFFER_STORE_DWORD{_suffix}", ScalarStore(_count, buffer=True))
        declare(f"S_SCRATCH_LOAD_DWORD{_suffix}", ScalarLoad(_count, unit=64))  # Vega ISA, 12.6: an offset in 64 bytes
        declare(f"S_SCRATCH_STORE_DWORD{_suffix}", ScalarStore(_count, unit=64))
for _word, (_modify, _kind) in _ATOMICS.items():
    for _bits, _suffix in (32, ""), (64, "_X2"):
        declare(f"S_ATOMIC_{_word}{_suffix}", ScalarAtomic(Atomic(_modify, _kind, _bits)))
        declare(f"S_BUFFER_ATOMIC_{_word}{_suffix}", ScalarAtomic(Atomic(_modify, _kind, _bits), buffer=True))
declare("GLOBAL_LOAD_DWORD_ADDTID", Load(by_lane=True))
declare("GLOBAL_STORE_DWORD_ADDTID", Store(by_lane=True))
