"""A strip of a wave whose lanes are all active, and whose addresses follow each other.

In: what `region.LaneStrip` gets. Out: the same loop body, with what is scalar before the
loop, and conditions (``guards``) that are tested there: EXEC is not among them. Invariant: where all hold the body does
what the instructions would do one after the other; their accesses raise no fault, and none meets another's out of turn.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.emulator.records.layout import SITE, STRIP, WAVE, WORKER, row_offset
from luthier_py.emulator.vector_regions.affine_values import AffineOps, AffineValue, ScalarWord
from luthier_py.emulator.vector_regions.emitter import Emitter
from luthier_py.emulator.vector_regions.lane_strip import FULL, LaneAccess, LaneStrip, RowCell, StripPlace
from luthier_py.isa.semantics.algebra import U32, Kind, Value

_WORDS = f"<{STRIP} x i32>"
_GLOBAL = "near", "far", "flat"
# Whose accesses may meet another lane's by a kind: all have one row of private memory, and a lane its own column.
_MEETS = {"lds": ("lds",), "private": _GLOBAL, **dict.fromkeys(_GLOBAL, (*_GLOBAL, "private"))}


@dataclass(frozen=True, slots=True)
class _Range:
    """What one instruction accesses of all lanes: ``size`` bytes from ``at`` on, i64s; ``pattern``: what is whose, or
    None if nothing can be said, or where the i1 ``overlaps`` holds."""

    at: str
    size: str
    stores: bool
    kind: str
    pattern: tuple[int, ...] | None
    overlaps: str = ""


class FullExecStrip(LaneStrip):
    """``even_rows``: those that may be taken for affine values; of the others nothing is known."""

    def __init__(self, emitter: Emitter, wave_size: int, lane: str, pointer: str, wave: str, label: str,
                 even_rows: int) -> None:
        super().__init__(emitter, wave_size, lane, pointer, wave, label)
        self.ops: AffineOps = AffineOps(emitter, STRIP, self)
        self.ops.lane_numbers = self._number_lanes
        self._guards: set[str] = set()
        self.guard = ""
        """Not 0 where all conditions so far hold, an i8; the rest is said by ``complete``."""
        self.decided = 0
        """Rows that addresses come from, which have to be affine values."""
        self._roots: dict[int, AffineValue] = {}
        self.scattered = False
        """Whether some access is none of lanes one after the other."""
        self._even_rows = even_rows
        self._ranges: list[_Range] = []

    def set_mask(self, mask: str) -> None:
        """All lanes are active."""

    # Conditions

    def last_lane(self) -> int:
        """That of the wave: these loops are for all of its lanes."""
        return self._wave_size - 1

    def require(self, condition: str, roots: int = 0) -> None:
        if condition not in self._guards:
            self._guards.add(condition)
            body, self._emitter.lines = self._emitter.lines, self.before_loop
            self._guard(condition)
            self._emitter.lines = body

    def _guard(self, condition: str) -> None:
        """A number, and at once: of a chain of flags LLVM makes branches, and keeps them all in memory until then."""
        flag = self._emitter.let(f"zext i1 {condition} to i8")
        self.guard = self._emitter.let(f"and i8 {self.guard}, {flag}") if self.guard else flag

    def complete(self) -> str:
        """Work out the other conditions, behind ``before_loop``; whether all hold."""
        for one, other in ((a, b) for place, a in enumerate(self._ranges) for b in self._ranges[:place]):
            if (one.stores or other.stores) and one.kind in _MEETS[other.kind]:
                for condition in self._apart(one, other):
                    self._guard(condition)
        for row in sorted(self._roots):
            self._guard(self._is_even(row))
        return self._emitter.let(f"icmp ne i8 {self.guard}, 0") if self.guard else "true"

    def signs(self) -> list[str]:
        """Of each row that has to be an affine value, that its ends look like it: cheap, and elsewhere mostly false."""
        e = self._emitter

        def lane(row: int, number: int) -> str:
            offset = row_offset(row, self._wave_size) + 4 * number
            return e.let(f"load i32, ptr {e.let(f'getelementptr i8, ptr {self._wave}, i64 {offset}')}, align 4")

        found = []
        for row in sorted(self._roots):
            first, second, last = (lane(row, number) for number in (0, 1, self.last_lane()))
            way = e.let(f"mul i32 {e.let(f'sub i32 {second}, {first}')}, {self.last_lane()}")
            found.append(e.let(f"icmp eq i32 {e.let(f'sub i32 {last}, {first}')}, {way}"))
        return found

    @property
    def root_rows(self) -> int:
        """That were taken for affine values."""
        return sum(1 << row for row in self._roots)

    @property
    def accesses(self) -> bool:
        """Whether an access of memory is a part of the loop, under the condition that its addresses are even."""
        return bool(self._ranges)

    def _apart(self, one: _Range, other: _Range) -> list[str]:
        """That no lane of one meets another lane of the other: they do not overlap, or are the same."""
        e = self._emitter
        alike = one.pattern == other.pattern is not None
        overlaps = [each.overlaps for each in (one, other) if each.overlaps]
        if alike and one.at == other.at and not overlaps:
            return []
        ends = [e.let(f"add i64 {each.at}, {each.size}") for each in (one, other)]
        below, above = e.let(f"icmp ule i64 {ends[0]}, {other.at}"), e.let(f"icmp ule i64 {ends[1]}, {one.at}")
        apart = e.let(f"or i1 {below}, {above}")
        if not alike:
            return [apart]
        same = e.let(f"icmp eq i64 {one.at}, {other.at}")
        for flag in overlaps:
            same = e.let(f"and i1 {same}, {e.let(f'xor i1 {flag}, true')}")
        return [e.let(f"or i1 {apart}, {same}")]

    def _is_even(self, row: int) -> str:
        """Whether the row is the affine value that it was taken for."""
        e, root = self._emitter, self._roots[row]
        numbers = "<" + ", ".join(f"i32 {i}" for i in range(STRIP)) + ">"
        steps = e.let(f"mul {_WORDS} {_splat(e, root.step)}, {numbers}")
        expected, wrong = e.let(f"add {_WORDS} {_splat(e, root.first)}, {steps}"), ""
        further = _splat(e, e.let(f"mul i32 {root.step}, {STRIP}"))
        for lane in range(0, self._wave_size, STRIP):
            if lane:
                expected = e.let(f"add {_WORDS} {expected}, {further}")
            place = e.let(f"getelementptr i8, ptr {self._wave}, i64 {row_offset(row, self._wave_size) + 4 * lane}")
            found = e.let(f"load {_WORDS}, ptr {place}, align 64")
            unlike = e.let(f"xor {_WORDS} {found}, {expected}")
            wrong = e.let(f"or {_WORDS} {wrong}, {unlike}") if wrong else unlike
        return e.all_zero(STRIP, wrong)

    # Values

    def splat(self, scalar: Value) -> Value:
        if scalar.type.kind is Kind.FLOAT or scalar.type.bits not in (32, 64):
            return super().splat(scalar)
        if scalar.type.bits == 32:
            return self._same(scalar)
        low = self.before(f"trunc i64 {scalar.ref} to i32")
        high = self.before(f"trunc i64 {self.before(f'lshr i64 {scalar.ref}, 32')} to i32")
        low_half, high_half = (self._same(Value(scalar.ops, U32, half)) for half in (low, high))
        return self.ops.join_halves(low_half, high_half, scalar.type)

    def _same(self, scalar: Value) -> Value:
        return self.ops.affine_value(scalar.type, AffineValue(
            str(scalar.ref), 0, 0, lambda: str(super(FullExecStrip, self).splat(scalar).ref)))

    def _load_row(self, row: int) -> RowCell:
        if not self._even_rows >> row & 1:
            return super()._load_row(row)
        place = self.rows_of_wave(row)
        first = self.before(f"load i32, ptr {place}, align 64")
        second = self.before(f"load i32, ptr {self.before(f'getelementptr i8, ptr {place}, i64 4')}, align 4")
        step = self.before(f"sub i32 {second}, {first}")
        root = AffineValue(first, step, 1 << row, lambda: str(super(FullExecStrip, self)._load_row(row).value.ref))
        self._roots[row] = root
        return RowCell(self.ops.affine_value(U32, root), FULL, None, False)

    # Accesses

    def place_of(self, access: LaneAccess) -> StripPlace | None:
        far, private = access.kind in ("far", "flat"), access.kind == "private"
        low = self.ops.term(self.row(access.row))
        high = self.ops.term(self.row(access.row + 1)) if far else AffineValue(0, 0, 0, str)
        step = self._step(access, low, high)
        if low is None or high is None or step is None or private and access.distance:
            self.scattered = True
            return None
        self.decided |= low.roots | high.roots
        if private:
            return self._private(access, low.first)
        self.ops.require_no_wrap(low)
        at = self._address(access, low.first, high.first if far else None)
        size = str((self._wave_size if step else 1) * access.size + access.distance)
        overlaps, stride = self._overlaps(access, low.step), str(step)
        if overlaps:
            stride = self.before(f"zext i32 {low.step} to i64")
            size = self.before(f"add i64 {self.before(f'mul i64 {stride}, {self.last_lane()}')}, {access.size}")
        self._require_room(*self._window(access, at), size)
        pattern = (access.size,) if step and not access.distance else None
        self._ranges.append(_Range(at, size, access.stores, access.kind, pattern, overlaps))
        return StripPlace(self._pointer_at(access, at, stride), bool(step), overlaps=overlaps)

    def _overlaps(self, access: LaneAccess, step: ScalarWord) -> str:
        """Whether elements of several dwords have a stride of a dword, or halves of a byte, an i1; empty where they
        cannot, or may not. Parts of an element are read one by one then, so no other thread may write them."""
        if not self._may_overlap(access) or isinstance(step, int):
            return ""
        return self.before(f"icmp eq i32 {step}, {min(access.size // 2, 4)}")

    @staticmethod
    def _may_overlap(access: LaneAccess) -> bool:
        return not access.stores and access.size not in (1, 4) and access.kind in _GLOBAL and not access.distance

    def _private(self, access: LaneAccess, first: ScalarWord) -> StripPlace:
        """A row of private memory. What is above 32 bits of an offset is carry."""
        scratch, size = self._field("scratch"), self._field("scratch_bytes")
        offset = self.before(f"add i32 {self.before(f'trunc i64 {access.base} to i32')}, {first}")
        self.require(self.before(f"icmp eq i32 {self.before(f'and i32 {offset}, 3')}, 0"))
        wide = self.before(f"zext i32 {offset} to i64")
        self._require_room(wide, size, str(access.size))
        every = self.before(f"mul i64 {size}, {self._wave_size}")
        self._ranges.append(_Range(scratch, every, access.stores, access.kind, None))
        at = self.before(f"add i64 {scratch}, {self.before(f'mul i64 {wide}, {self._wave_size}')}")
        row, offset = self.before(f"inttoptr i64 {at} to ptr"), self._bytes("4")
        pointer = self._emitter.let(f"getelementptr i8, ptr {row}, i64 {offset}")
        return StripPlace(pointer, True, 4 * self._wave_size)

    def _field(self, name: str) -> str:
        return self.before(f"load i64, ptr {self.before(f'getelementptr i8, ptr {self._wave}, i64 {WAVE[name]}')}")

    def _require_room(self, into: str, room: str, size: str) -> None:
        """``size`` bytes from ``into`` on."""
        self._emitter.declarations.add("declare i64 @llvm.usub.sat.i64(i64, i64)")
        last = str(int(size) - 1) if size.isdigit() else self.before(f"sub i64 {size}, 1")
        places = self.before(f"call i64 @llvm.usub.sat.i64(i64 {room}, i64 {last})")
        self.require(self.before(f"icmp ult i64 {into}, {places}"))

    def _step(self, access: LaneAccess, low: AffineValue | None, high: AffineValue | None) -> int | None:
        """Bytes from lane to lane: those of an element, or none; None where it is neither."""
        if low is None or high is None or isinstance(high.step, int) and high.step:
            return None
        size = 0 if access.kind == "private" else access.size
        if isinstance(low.step, int):
            return low.step if low.step == size or not low.step and not access.stores else None
        fits = self.before(f"icmp eq i32 {low.step}, {size}")
        if self._may_overlap(access):
            overlaps = self.before(f"and i1 {self._overlaps(access, low.step)}, {self._is_alone()}")
            fits = self.before(f"or i1 {fits}, {overlaps}")
        self.require(fits)
        if isinstance(high.step, str):
            self.require(self.before(f"icmp eq i32 {high.step}, 0"))
        return size

    def _is_alone(self) -> str:
        """Whether only the worker writes memory."""
        worker = self.before(f"inttoptr i64 {self._field('worker')} to ptr")
        place = self.before(f"getelementptr i8, ptr {worker}, i64 {WORKER['alone']}")
        return self.before(f"icmp ne i64 {self.before(f'load i64, ptr {place}')}, 0")

    def _address(self, access: LaneAccess, low: ScalarWord, high: ScalarWord | None) -> str:
        """Of the first lane, i64."""
        wide = self.before(f"zext i32 {low} to i64")
        if high is not None:
            above = self.before(f"shl i64 {self.before(f'zext i32 {high} to i64')}, 32")
            wide = self.before(f"or i64 {wide}, {above}")
        return self.before(f"add i64 {wide}, {access.base}")

    def _window(self, access: LaneAccess, at: str) -> tuple[str, str]:
        """How far the address is from the start of what may be accessed, and how much that is."""
        if access.kind == "lds":
            return at, self.lds_bounds()[1]
        begin = self.before(f"load i64, ptr {access.site}")
        end_of_site = self.before(f"getelementptr i8, ptr {access.site}, i64 {SITE['end']}")
        end = self.before(f"load i64, ptr {end_of_site}")
        return self.before(f"sub i64 {at}, {begin}"), self.before(f"sub i64 {end}, {begin}")

    def _pointer_at(self, access: LaneAccess, at: str, step: str) -> str:
        """To this strip's first element."""
        if access.kind == "lds":
            at = self.before(f"add i64 {at}, {self.lds_bounds()[0]}")
        first = self.before(f"inttoptr i64 {at} to ptr")
        if step == "0":
            return first
        return self._emitter.let(f"getelementptr i8, ptr {first}, i64 {self._bytes(step)}")

    def _bytes(self, step: str) -> str:
        """From the first lane of the wave to the strip's."""
        return self.emit_once(lambda: self._emitter.let(f"mul i64 {self._lane}, {step}"), "bytes", step)


def _splat(e: Emitter, word: ScalarWord) -> str:
    first = e.let(f"insertelement {_WORDS} poison, i32 {word}, i64 0")
    return e.let(f"shufflevector {_WORDS} {first}, {_WORDS} poison, {_WORDS} zeroinitializer")
