"""LLVM IR as text, and the algebra of isa.semantics on top of it.

In: primitives applied to values. Out: lines of LLVM IR. Text is used because LLVM has to parse
it anyway and a line costs under a microsecond; nothing is optimised here, LLVM does that.

Invariant: no line has undefined behaviour or gives poison, whatever the values of the registers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from luthier_py.isa.semantics.algebra import BOOL, F16, F32, F64, U32, Kind, Prim, Type, Value, is_nan, select

_FLOAT_NAME = {16: "half", 32: "float", 64: "double"}
_STRUCT = {16: "<e", 32: "<f", 64: "<d"}

_INTEGER = {
    Prim.ADD: "add", Prim.SUB: "sub", Prim.MUL: "mul", Prim.AND: "and", Prim.OR: "or", Prim.XOR: "xor", Prim.SHL: "shl",
}  # fmt: skip
_FLOAT = {Prim.ADD: "fadd", Prim.SUB: "fsub", Prim.MUL: "fmul", Prim.DIV: "fdiv"}
_COMPARE = {Prim.EQ: ("eq", "oeq"), Prim.NE: ("ne", "une"), Prim.LT: ("lt", "olt"), Prim.LE: ("le", "ole")}
_SIGNED_INTRINSIC = {Prim.MIN: "min", Prim.MAX: "max", Prim.ADD_SAT: "add.sat", Prim.SUB_SAT: "sub.sat"}
_UNARY_INTRINSIC = {
    Prim.SQRT: "sqrt", Prim.FLOOR: "floor", Prim.CEIL: "ceil", Prim.TRUNC: "trunc", Prim.RINT: "roundeven",
    Prim.POPCOUNT: "ctpop", Prim.REVERSE: "bitreverse",
}  # fmt: skip
TRANSCENDENTAL = (Prim.EXP2, Prim.LOG2, Prim.SIN, Prim.COS, Prim.TANH)
_IN_WIDER = (Prim.ADD, Prim.SUB, Prim.MUL, Prim.DIV, Prim.SQRT, Prim.FLOOR, Prim.CEIL, Prim.TRUNC, Prim.RINT,
             *TRANSCENDENTAL)


class Emitter:
    """Lines of one module, with the function that is being written."""

    def __init__(self, wave_size: int = 64, prefix: str = "%v") -> None:
        """``prefix``: of numbered names."""
        self.wave_size = wave_size
        self._prefix = prefix
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.functions: list[str] = []
        self.constants: list[str] = []
        self.narrow: set[str] = set()
        """Names of i32 that LLVM may know to be no more than a half, see `_merge`."""
        self._count = 0
        self._labels = 0

    def emit(self, line: str) -> None:
        """Add a line to the function: an instruction that gives no result."""
        self.lines.append("  " + line)

    def let(self, expression: str) -> str:
        """A new name for ``expression``."""
        self._count += 1
        name = f"{self._prefix}{self._count}"
        self.lines.append(f"  {name} = {expression}")
        return name

    def opaque(self, word: str) -> str:
        """The same i32, of which LLVM knows nothing."""
        return self.let(f'call i32 asm "", "=r,0"(i32 {word})')

    def label(self, hint: str) -> str:
        """A label that the function has not had yet; :meth:`place` puts it somewhere."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    def place(self, label: str) -> None:
        """Begin the basic block ``label``; what was emitted before it must end in a branch or return."""
        self.lines.append(label + ":")

    def begin(self, label: str) -> None:
        """Fall through into a new block."""
        self.emit(f"br label %{label}")
        self.place(label)

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """End the basic block: go to the label ``then`` if the i1 ``condition`` holds, else to ``otherwise``."""
        self.emit(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def inside(self, at: str, size: str, begin: str, end: str) -> str:
        """Whether ``size`` bytes (not 0) from ``at`` on lie from ``begin`` to ``end``, even where their end wraps."""
        into, length = self.let(f"sub i64 {at}, {begin}"), self.let(f"sub i64 {end}, {begin}")
        begins, room = self.let(f"icmp ult i64 {into}, {length}"), self.let(f"sub i64 {length}, {into}")
        return self.let(f"and i1 {begins}, {self.let(f'icmp ule i64 {size}, {room}')}")

    def all_zero(self, lanes: int, words: str) -> str:
        """Whether all of a vector of i32 are: a form for which the host has one instruction."""
        found = self.call("i32", f"llvm.vector.reduce.or.v{lanes}i32", [(f"<{lanes} x i32>", words)])
        return self.let(f"icmp eq i32 {found}, 0")

    def numbers(self, values: Iterable[int]) -> str:
        """A constant array of i32: a pointer to it."""
        name, words = f"@numbers.{len(self.constants)}", [f"i32 {value}" for value in values]
        self.constants.append(f"{name} = private constant [{len(words)} x i32] [{', '.join(words)}]")
        return name

    def call(self, result: str, name: str, arguments: Iterable[tuple[str, str]]) -> str:
        """A call of a function or intrinsic that is declared on the fly; arguments are (type, value)."""
        arguments = list(arguments)
        self.declarations.add(f"declare {result} @{name}({', '.join(type for type, _ in arguments)})")
        text = f"call {result} @{name}({', '.join(f'{type} {value}' for type, value in arguments)})"
        if result != "void":
            return self.let(text)
        self.emit(text)
        return ""

    def support(self, result: str, name: str, arguments: Iterable[tuple[str, str]]) -> str:
        """A call of a support function (see engine)."""
        return self.call(result, f"luthier_{name}_w{self.wave_size}", arguments)

    @contextmanager
    def divert_lines(self) -> Iterator[list[str]]:
        """Lines emitted inside go to the list given, not to the function."""
        kept, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = kept

    def define(self, header: str) -> None:
        """Close the function whose lines were emitted."""
        self.functions.append("\n".join([f"define {header} {{", *self.lines, "}"]))
        self.lines = []

    def module(self) -> str:
        """The module's text: constants, declarations of what is called and not defined here, and functions."""
        defined = {text.split("@", 1)[1].split("(", 1)[0] for text in self.functions}
        declarations = [line for line in sorted(self.declarations) if line.split("@")[1].split("(")[0] not in defined]
        return "\n".join(self.constants + declarations + self.functions) + "\n"


class LlvmOps:
    """The algebra on scalars (``lanes`` 0) or on vectors of ``lanes``; a Value's ref is LLVM text."""

    def __init__(self, emitter: Emitter, lanes: int = 0) -> None:
        self.emitter = emitter
        self.lanes = lanes
        self.lane_numbers: Callable[[], str] = lambda: "0"
        """Text of the vector of lane numbers."""
        self._types: dict[Type, str] = {}

    def name(self, type: Type) -> str:
        """LLVM's name of the type."""
        known = self._types.get(type)
        if known is None:
            known = "i1" if type is BOOL else _FLOAT_NAME[type.bits] if type.kind is Kind.FLOAT else f"i{type.bits}"
            if self.lanes:
                known = f"<{self.lanes} x {known}>"
            self._types[type] = known
        return known

    def suffix(self, type: Type) -> str:
        """The type in an intrinsic's name."""
        scalar = f"f{type.bits}" if type.kind is Kind.FLOAT else f"i{type.bits}"
        return f"v{self.lanes}{scalar}" if self.lanes else scalar

    def value(self, type: Type, text: str) -> Value:
        """An operand of LLVM (a name or constant) as a value; nothing is emitted."""
        return Value(self, type, text)

    def let(self, type: Type, expression: str) -> Value:
        """Emit ``expression`` under a new name, as a value."""
        return Value(self, type, self.emitter.let(expression))

    def constant(self, type: Type, value: int | float) -> Value:
        """A constant, the same in every lane; integers are cut to the type's bits."""
        if type.kind is Kind.FLOAT:
            bits = int.from_bytes(struct.pack(_STRUCT[type.bits], value), "little")
            return self.constant(type.unsigned, bits).as_(type)
        if type is BOOL:
            text = "true" if value else "false"
        else:
            text = str(int(value) & ((1 << type.bits) - 1))
        if not self.lanes:
            return Value(self, type, text)
        element = "i1" if type is BOOL else f"i{type.bits}"
        return Value(self, type, f"splat ({element} {text})")

    def splat(self, scalar: Value) -> Value:
        """A scalar in every lane."""
        element = scalar.ops.name(scalar.type)  # type: ignore[attr-defined]
        vector = self.name(scalar.type)
        first = self.emitter.let(f"insertelement {vector} poison, {element} {scalar.ref}, i64 0")
        everywhere = f"shufflevector {vector} {first}, {vector} poison, <{self.lanes} x i32> zeroinitializer"
        return self.let(scalar.type, everywhere)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        """Emit one primitive. On f16 most are worked out in f32, then rounded once to f16."""
        a = operands[0] if operands else None
        if a is not None and a.type == F16 and prim in _IN_WIDER:
            return self.apply(prim, F32, *self.widen_operands(prim, operands)).to(F16)
        if a is not None and a.type == F16 and prim is Prim.FMA:
            return _odd_fma(*(x.to(F32) for x in operands)).to(F16)
        return _LOWER[prim](self, prim, type, operands)

    def widen_operands(self, prim: Prim, operands: tuple[Value, ...]) -> list[Value]:
        """Operands of f16 as f32."""
        return [operand.to(F32) for operand in operands]

    def intrinsic(self, name: str, type: Type, operands: Iterable[Value],
                  extra: tuple[tuple[str, str], ...] = ()) -> Value:
        """Emit a call of an intrinsic, by its full name (``llvm.fma.v16f32``); ``extra``: (type, text) of further
        arguments."""
        arguments = [(self.name(x.type), str(x.ref)) for x in operands]
        return self.value(type, self.emitter.call(self.name(type), name, [*arguments, *extra]))


Operands = tuple[Value, ...]
Lower = Callable[[LlvmOps, Prim, Type, Operands], Value]


def _arithmetic(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    word = _FLOAT[prim] if type.kind is Kind.FLOAT else _INTEGER[prim]
    return ops.let(type, f"{word} {ops.name(type)} {x[0].ref}, {x[1].ref}")


def _merge(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    """The same where no bit is in both operands.

    LLVM 18 to 22 for x86 (issue 205291, mended by pull request 205600) put a loaded half or byte into the low part of a
    register where IR has ``or i32 (x & ~0xFFFF), half``, and took the whole register for its zext, though x was the low
    half of an i64: upper bits of x came into the result. It never does where it does not see that the half is one.
    """
    if not ops.lanes:
        x = tuple(ops.value(part.type, ops.emitter.opaque(str(part.ref))) if part.ref in ops.emitter.narrow else part
                  for part in x)
    return _arithmetic(ops, prim, type, x)


def _mask(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    return _narrow(ops, _arithmetic(ops, prim, type, x))


def _narrow(ops: LlvmOps, made: Value) -> Value:
    """``made``, of which LLVM may know that it is no more than a half."""
    if made.type.bits == 32 and not ops.lanes:
        ops.emitter.narrow.add(str(made.ref))
    return made


def _shift_right(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    word = "ashr" if type.kind is Kind.SINT else "lshr"
    made = ops.let(type, f"{word} {ops.name(type)} {x[0].ref}, {x[1].ref}")
    return made if word == "ashr" else _narrow(ops, made)


def _compare(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    operand = x[0].type
    if operand == F16:
        x = tuple(v.to(F32) for v in x)
        operand = F32
    if operand.kind is Kind.FLOAT:
        return ops.let(BOOL, f"fcmp {_COMPARE[prim][1]} {ops.name(operand)} {x[0].ref}, {x[1].ref}")
    word = _COMPARE[prim][0]
    if prim in (Prim.LT, Prim.LE):
        word = ("s" if operand.kind is Kind.SINT else "u") + word
    return ops.let(BOOL, f"icmp {word} {ops.name(operand)} {x[0].ref}, {x[1].ref}")


def _compare_unordered(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    if x[0].type == F16:
        x = tuple(v.to(F32) for v in x)
    return ops.let(BOOL, f"fcmp uno {ops.name(x[0].type)} {x[0].ref}, {x[1].ref}")


def _select(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    name = ops.name(type)
    return ops.let(type, f"select {ops.name(BOOL)} {x[0].ref}, {name} {x[1].ref}, {name} {x[2].ref}")


def _bits(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    if type.kind is not Kind.FLOAT and x[0].type.kind is not Kind.FLOAT:
        return ops.value(type, str(x[0].ref))
    return ops.let(type, f"bitcast {ops.name(x[0].type)} {x[0].ref} to {ops.name(type)}")


def _resize(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    source = x[0].type
    word = "trunc" if type.bits < source.bits else "sext" if source.kind is Kind.SINT else "zext"
    made = ops.let(type, f"{word} {ops.name(source)} {x[0].ref} to {ops.name(type)}")
    return _narrow(ops, made) if word == "zext" and 1 < source.bits <= 16 else made


def _convert(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    source = x[0].type
    if source == F64 and type == F16:
        return _odd_f32(x[0]).to(F16)
    if source.kind is Kind.FLOAT and type.kind is Kind.FLOAT:
        word = "fpext" if type.bits > source.bits else "fptrunc"
        return ops.let(type, f"{word} {ops.name(source)} {x[0].ref} to {ops.name(type)}")
    if source.kind is Kind.FLOAT:
        sign = "s" if type.kind is Kind.SINT else "u"
        value = x[0].to(F32) if source == F16 else x[0]
        return ops.intrinsic(f"llvm.fpto{sign}i.sat.{ops.suffix(type)}.{ops.suffix(value.type)}", type, [value])
    word = "sitofp" if source.kind is Kind.SINT else "uitofp"
    return ops.let(type, f"{word} {ops.name(source)} {x[0].ref} to {ops.name(type)}")


def _odd_f32(wide: Value) -> Value:
    """f64 to f32, rounded to odd, so that rounding once more is as rounding once (hosts have no f64 to f16)."""
    near = wide.to(F32)
    back = near.to(F64)
    bits = near.as_(U32)
    below = select(abs(back) > abs(wide), bits - 1, bits)
    return select(back.ne(wide), below | 1, bits).as_(F32)


def _odd_fma(a: Value, b: Value, c: Value) -> Value:
    """Of f32 that are f16: rounded to odd, so that rounding it to f16 is as rounding once. The product is exact, and
    what rounding the sum leaves out is known exactly. Of several NaN the first one, as hosts' own have it: LLVM may
    exchange operands."""
    product = a * b
    total = product + c
    of_c = total - product
    error = (product - (total - of_c)) + (c - of_c)
    bits = total.as_(U32)
    odd = (bits - ((bits ^ error.as_(U32)) >> 31)) | 1
    found = select((error < 0.0) | (error > 0.0), odd, bits).as_(F32)  # an error that is NaN is none
    for each in (c, b, a):
        found = select(is_nan(each), each, found)
    return found


def _fma(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    return ops.intrinsic(f"llvm.fma.{ops.suffix(type)}", type, x)


def _call_signed_intrinsic(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    sign = "s" if type.kind is Kind.SINT else "u"
    return ops.intrinsic(f"llvm.{sign}{_SIGNED_INTRINSIC[prim]}.{ops.suffix(type)}", type, x)


def _unary_intrinsic(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    return ops.intrinsic(f"llvm.{_UNARY_INTRINSIC[prim]}.{ops.suffix(type)}", type, x)


def _count_zeros(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    word = "ctlz" if prim is Prim.CLZ else "cttz"
    return ops.intrinsic(f"llvm.{word}.{ops.suffix(type)}", type, x, (("i1", "false"),))


def _transcendental(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    name, function = ops.name(type), f"{prim.name.lower()}_{ops.suffix(type)}"
    return ops.value(type, ops.emitter.support(name, function, [(name, str(x[0].ref))]))


def _lane(ops: LlvmOps, prim: Prim, type: Type, x: Operands) -> Value:
    return ops.value(U32, ops.lane_numbers())


_LOWER: dict[Prim, Lower] = {
    **dict.fromkeys((Prim.SUB, Prim.MUL, Prim.SHL, Prim.DIV), _arithmetic),
    **dict.fromkeys((Prim.OR, Prim.ADD, Prim.XOR), _merge),
    Prim.AND: _mask,
    **dict.fromkeys(_COMPARE, _compare),
    **dict.fromkeys(_SIGNED_INTRINSIC, _call_signed_intrinsic),
    **dict.fromkeys(_UNARY_INTRINSIC, _unary_intrinsic),
    **dict.fromkeys((Prim.CLZ, Prim.CTZ), _count_zeros),
    **dict.fromkeys(TRANSCENDENTAL, _transcendental),
    Prim.SHR: _shift_right, Prim.UNORDERED: _compare_unordered, Prim.SELECT: _select, Prim.BITS: _bits,
    Prim.RESIZE: _resize, Prim.CONVERT: _convert, Prim.FMA: _fma, Prim.LANE: _lane,
}  # fmt: skip
