"""Accesses of memory: one call of a support function, or a part of the region.

In: what is moved, and the addresses. Out: IR that moves the data, and leaves by %fault when a check fails.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.emulator.instructions.loads import Addresses, StripLoad, StripStore
from luthier_py.emulator.instructions.steps import register_number, step_of
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.native.atomics import FLOAT_LETTERS
from luthier_py.emulator.options.checks import ACCESS_KINDS, MISTAKES, AccessTrait, AccessUse
from luthier_py.emulator.options.settings import FIRST_SITE, Style, number_of
from luthier_py.emulator.records.layout import SITE_BYTES, VECTOR_ROWS, WAVE, ZERO_ROW, SurfaceRefusal
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.properties.coherence import is_coherent
from luthier_py.isa.semantics.algebra import U64, Kind, Type, Value

_USES = {"load": AccessUse.READS, "store": AccessUse.WRITES, "atomic": AccessUse.MODIFIES}
_ELEMENT_BYTES = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}
_DWORDS = {"b32": 1, "b64": 2, "b96": 3, "b128": 4}
_NARROW = {element: 8 * size for element, size in _ELEMENT_BYTES.items() if size < 4}


@dataclass(frozen=True, slots=True)
class Move:
    """One call of a support function: what to do with which rows."""

    operation: str          # load, store or atomic, and the element: "load_b64"
    data: int               # row of the data
    second: int | None = None  # atomics: row of the value compared with
    result: int | None = None  # atomics: row for the old values
    distance: int = 0          # pairs: bytes from the first element to the second


class AccessCode:
    """Writes the accesses of one function."""

    def __init__(self, w: WaveCode) -> None:
        self.w = w

    def mask(self) -> Value:
        """EXEC as an u64: in wave32 the upper half is 0."""
        return self.w.exec().to(U64)

    def call(self, move: Move, where: Addresses) -> None:
        """For the lanes of EXEC: loads of whole dwords become part of the region; everything, where lanes are even."""
        if self.w.cycles is not None:
            self.w.settle()
            self.w.cycles.access(move.operation, where.kind, str(where.mask.ref), str(where.base.ref),
                                 self.w.row(where.row))
        use, _, element = move.operation.partition("_")
        words = _DWORDS.get(element.removeprefix("p"))
        in_loops = use == "load" and where.kind != "private" and self.w.style is not Style.CALLS
        narrow = _NARROW.get(element, 0)
        never = words is None and (not narrow or where.kind == "private") or use == "atomic" or self.w.settings.checks
        if never or not (in_loops and words or self.w.style is Style.EVEN_LOOPS):
            self.support(move, where)
            return
        site, rows = self.site(), (move.data,) if move.second is None else (move.data, move.second)
        part = (StripLoad if use == "load" else StripStore)(
            self.w, where, site, words or 1, rows, move.distance, narrow, element.startswith("i"))
        if in_loops and words:
            self.w.put_off(part.write)
        else:
            self.w.put_off_call(part.write, lambda: self._call(move, where, site), part.finish)

    def support(self, move: Move, where: Addresses) -> None:
        """Call the support function for the lanes of ``where.mask``."""
        self.w.settle()
        self._call(move, where, self.site())

    def _call(self, move: Move, where: Addresses, site: str) -> None:
        mask = self._emit_access_check(move, where) if self.w.settings.checks else str(where.mask.ref)
        arguments = [
            ("ptr", "%wave"), ("i64", mask), ("i64", str(where.base.ref)),
            ("ptr", self.w.row(where.row)), ("ptr", self.w.row(move.data)),
        ]
        second = self.w.row(ZERO_ROW if move.second is None else move.second)
        if move.result is not None:
            arguments += [("ptr", second), ("ptr", self.w.row(move.result)), ("ptr", site)]
        else:
            arguments += [("ptr", site), ("i64", str(move.distance)), ("ptr", second)]
        self.check(self.w.emitter.support("i1", f"{where.kind}_{move.operation}", arguments))

    def _emit_access_check(self, move: Move, where: Addresses) -> str:
        """The lanes whose access may proceed."""
        numbers = self.w.emitter.numbers(
            [self.w.pc, ACCESS_KINDS.index(where.kind), *_use(move), int(_traits(move, self.w.coherent)),
             *map(_encode_register, (move.data, move.second) if move.result is None else (move.result, None))])
        second = self.w.row(ZERO_ROW if move.second is None else move.second)
        return self.w.emitter.call("i64", "luthier_watch_access", [
            ("ptr", "%wave"), ("i64", str(where.mask.ref)), ("i64", str(where.base.ref)),
            ("ptr", self.w.row(where.row)), ("ptr", self.w.row(move.data)), ("ptr", second),
            ("i64", str(move.distance)), ("ptr", numbers)])

    def emit_element_checks(self, stores: bool, lanes: Value, size: Value, addresses: int) -> str:
        """Those of ``lanes`` that may access elements of ``size`` bytes, at the addresses in a pair of rows."""
        if not self.w.settings.checks:
            return str(lanes.ref)
        use = _USES["store" if stores else "load"]
        numbers = self.w.emitter.numbers([self.w.pc, ACCESS_KINDS.index("far"), use, 0, 1, int(self.w.coherent), 0, 0])
        return self.w.emitter.call("i64", "luthier_watch_elements", [
            ("ptr", "%wave"), ("i64", str(lanes.ref)), ("i64", str(size.to(U64).ref)), ("ptr", self.w.row(addresses)),
            ("ptr", numbers)])

    def watch(self, inst: Inst) -> None:
        """Write code that reports the coming instruction to the checks."""
        w = self.w
        w.coherent = is_coherent(inst, w.settings.target)
        if not w.settings.checks & MISTAKES:
            return
        w.finish_state()
        step = w.emitter.numbers(step_of(
            w.pc, inst, w.settings.target, w.wave_size, w.index.roles if w.index is not None else 0))
        w.emitter.call("void", "luthier_watch_step", [("ptr", "%wave"), ("ptr", step)])

    def _emit_scalar_check(self, address: Value, size: Value, writes: bool) -> tuple[str, str]:
        """Where it is, and a label behind which it is not null; left open: where it is null."""
        e = self.w.emitter
        numbers = e.numbers([self.w.pc, 0, _USES["store" if writes else "load"], 0, 1, 0, 0, 0])
        place = e.call("ptr", "luthier_watch_scalar", [
            ("ptr", "%wave"), ("i64", str(address.ref)), ("i64", str(size.ref)), ("ptr", numbers)])
        seen, other = e.label("seen"), e.label("unseen")
        e.branch(e.let(f"icmp ne ptr {place}, null"), seen, other)
        e.place(other)
        return place, seen

    def site(self) -> str:
        """Pointer to a new site for the current instruction."""
        number = len(self.w.numbers.sites)
        self.w.numbers.sites.append(self.w.pc)
        return self.w.emitter.let(f"getelementptr i8, ptr %sites, i64 {number * SITE_BYTES}")

    def check(self, ok: str) -> None:
        """Leave by %fault unless ``ok``."""
        after = self.w.emitter.label("ok")
        self.w.emitter.branch(ok, after, "fault")
        self.w.emitter.place(after)

    def refuse_where(self, condition: Value, why: SurfaceRefusal) -> None:
        """Leave with a fault where it holds, of which the whole wave is guilty."""
        self.w.settle()
        refused, accepted = self.w.emitter.label("refused"), self.w.emitter.label("accepted")
        self.w.emitter.branch(str(condition.ref), refused, accepted)
        self.w.emitter.place(refused)
        arguments = [("ptr", "%wave"), ("ptr", self.site()), ("i64", "0"), ("i64", str(int(why)))]
        self.w.emitter.support("void", "refuse", arguments)
        self.w.emitter.emit("br label %fault")
        self.w.emitter.place(accepted)

    def trap(self) -> None:
        """Stop here, with a fault of its own kind (already in the wave)."""
        self.w.finish_state()
        number = len(self.w.numbers.sites)
        self.w.numbers.sites.append(self.w.pc)
        site = self.w.emitter.let(f"add i64 {number_of(FIRST_SITE)}, {number}")
        self.w.emitter.emit(f"store i64 {site}, ptr {self.w.field('fault_site')}")
        self.w.emitter.emit("br label %fault")

    def field_value(self, name: str) -> Value:
        """A field of the wave."""
        assert name in WAVE
        return self.w.ops.let(U64, f"load i64, ptr {self.w.field(name)}")

    def load_words(self, pointer: str, target: int, dwords: int) -> None:
        """Consecutive memory to consecutive scalar registers, two at a time."""
        step = min(dwords, 2)
        values = []
        for i in range(0, dwords, step):
            bits = 32 * min(step, dwords - i)
            place = self.w.emitter.let(f"getelementptr i8, ptr {pointer}, i64 {4 * i}")
            values.append(self.w.ops.let(Type(Kind.UINT, bits), f"load i{bits}, ptr {place}, align 4"))
        for i, value in enumerate(values):
            self.w.scalars.write(target + i * step, value)

    def resolve(self, address: Value, size: Value, writes: bool = False) -> str:
        """A checked pointer for an access that all lanes share; searched for if it is not where the last was."""
        self.w.settle()
        if self.w.settings.checks:
            return self._resolve_watched(address, size, writes)
        return self._resolve(address, size, writes)

    def _resolve_watched(self, address: Value, size: Value, writes: bool) -> str:
        e = self.w.emitter
        place, seen = self._emit_scalar_check(address, size, writes)
        pointer, wrong, done = self._resolve(address, size, writes), e.label("wrong"), e.label("resolved")
        e.begin(wrong)
        e.emit(f"br label %{done}")
        e.place(seen)
        e.emit(f"br label %{done}")
        e.place(done)
        return e.let(f"phi ptr [ {place}, %{seen} ], [ {pointer}, %{wrong} ]")

    def _resolve(self, address: Value, size: Value, writes: bool) -> str:
        emitter = self.w.emitter
        site = self.site()
        base = emitter.let(f"load i64, ptr {site}")
        end = emitter.let(f"load i64, ptr {emitter.let(f'getelementptr i8, ptr {site}, i64 8')}")
        known, search = emitter.label("known"), emitter.label("search")
        emitter.branch(emitter.inside(str(address.ref), str(size.ref), base, end), known, search)
        emitter.place(search)
        arguments = [("ptr", "%wave"), ("i64", str(address.ref)), ("i64", str(size.ref)), ("ptr", site), ("i64", "0"),
                     ("i64", str(int(writes)))]
        found = emitter.support("ptr", "resolve", arguments)
        emitter.branch(emitter.let(f"icmp ne ptr {found}, null"), known, "fault")
        emitter.place(known)
        return emitter.let(f"inttoptr i64 {address.ref} to ptr")


def _traits(move: Move, coherent: bool) -> AccessTrait:
    found = AccessTrait.COHERENT if coherent else AccessTrait(0)
    if move.result is not None and move.second not in (None, ZERO_ROW):
        found |= AccessTrait.COMPARES
    if move.result is not None and move.operation.rpartition("_")[2][0] in FLOAT_LETTERS:
        found |= AccessTrait.FLOATS
    return found


def _encode_register(row: int | None) -> int:
    """What native code calls it; 0 for none."""
    return register_number(row) if row is not None and row < VECTOR_ROWS else 0


def _use(move: Move) -> tuple[int, int, int]:
    """What is done, to how many bytes, in how many parts."""
    use, _, element = move.operation.partition("_")
    if use == "atomic":
        bits = int("".join(filter(str.isdigit, element.rpartition("_")[2])))
        return _USES[use], bits // 8, 1
    return _USES[use], _ELEMENT_BYTES[element.removeprefix("p")], 2 if element.startswith("p") else 1
