"""The region that is open while a block is translated, and the code that it becomes.

In: vector instructions with their EXEC, and accesses that are calls. Out: loops over strips of lanes between the calls.
Where it may pay (``even``), there is another loop for all, accesses too: for a wave whose lanes are all active, where
addresses follow each other. Invariant: both leave the same, and that one is entered where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

from luthier_py.base.records import dataclass
from luthier_py.emulator.records.layout import STRIP
from luthier_py.emulator.vector_regions.affine_values import SameMask
from luthier_py.emulator.vector_regions.emitter import Emitter
from luthier_py.emulator.vector_regions.forms import ItemForm
from luthier_py.emulator.vector_regions.full_exec_strip import FullExecStrip
from luthier_py.emulator.vector_regions.lane_strip import FULL, LaneStrip, StripWrite
from luthier_py.emulator.vector_regions.mask_strip import MOST_LINES, MaskStrip, join_masks
from luthier_py.emulator.vector_regions.scalars import Scalars
from luthier_py.isa.semantics.algebra import U32, Type, Value

EVERY_ROW = -1
Totals = dict[int, str]
"""Masks that were computed, by their scalar register."""
Afterwards = Callable[[], None]
AnyStrip = TypeVar("AnyStrip", bound=LaneStrip)


@dataclass(frozen=True, slots=True)
class PutOff:
    """An instruction under the EXEC ``mask``, which writes the scalar registers ``masks``; then rows ``live`` can be
    read. What is part of loops for even lanes only has ``call``, which does it elsewhere, and ``done``, which is to
    follow such a loop."""

    mask: str
    write: StripWrite
    live: int
    masks: tuple[int, ...]
    form: ItemForm | None
    call: Afterwards | None = None
    done: Afterwards | None = None


@dataclass(frozen=True, slots=True)
class _Loop(Generic[AnyStrip]):
    """One that is not emitted yet: ``sums`` are masks at the end of its body, ``same`` those that are known before;
    ``mask`` has the lanes that any of it is for."""

    mask: str
    names: dict[str, str]
    strip: AnyStrip
    body: list[str]
    sums: Totals
    same: Totals


class VectorRegion:
    """Mutable: the vector instructions of the current block that have been put off."""

    def __init__(self, emitter: Emitter, wave: str, wave_size: int, even: bool) -> None:
        self._emitter = emitter
        self._wave = wave
        self._wave_size = wave_size
        self._tries = even
        self._items: list[PutOff] = []
        self.masks: set[int] = set()
        """Scalar registers where a mask result of the open region will go."""

    def add(self, exec_mask: Value, write: StripWrite, live: int, masks: tuple[int, ...] = (),
            form: ItemForm | None = None, call: Afterwards | None = None, done: Afterwards | None = None) -> None:
        """Put off ``write``; then rows ``live`` can be read. It will write masks to the scalar registers ``masks``."""
        text = str(exec_mask.ref)
        all_ones = {str((1 << self._wave_size) - 1), FULL}
        self._items.append(PutOff(FULL if text in all_ones else text, write, live, masks, form, call, done))
        self.masks.update(masks)

    def flush(self, scalars: Scalars) -> None:
        """Write the code and hand its masks to ``scalars``."""
        if not self._items:
            return
        items, self._items = self._items, []
        self.masks.clear()
        scalars.pending = 0
        for index, total in self._emit_items(items, {}).items():
            scalars.write(index, Value(scalars.ops, Type(U32.kind, self._wave_size), total))

    def _emit_items(self, items: list[PutOff], given: Totals) -> Totals:
        """``given``: masks that instructions before them have computed."""
        if self._tries and (masks := self._masks_alone(items, given)) is not None:
            return masks
        even = self._even(items, given) if self._tries else None
        if even is None:
            return self._in_turn(items, given, any(item.call for item in items))
        e, (loop, holds, conditions) = self._emitter, even
        general, end, met = (e.label(hint) for hint in ("general", "uneven", "met"))
        self._where_likely(items, loop.strip, general)
        e.lines.extend(loop.strip.before_loop)
        e.lines.extend(conditions)
        e.branch(holds, loop.names["before"], general)
        fast = self._emit(loop)
        for item in items:
            if item.done is not None:
                item.done()
        e.emit(f"br label %{met}")
        e.place(general)
        slow = self._in_turn(items, given, False)
        e.begin(end)
        e.begin(met)
        kind = f"i{self._wave_size}"
        return {index: e.let(f"phi {kind} [ {fast[index]}, %{loop.names['after']} ], [ {total}, %{end} ]")
                for index, total in slow.items()}

    def _masks_alone(self, items: list[PutOff], given: Totals) -> Totals | None:
        """Without a loop; None where items do more, or much."""
        if any(item.call for item in items):
            return None
        e, strips, totals = self._emitter, list[MaskStrip](), Totals()
        with e.divert_lines() as lines:
            for first in range(0, self._wave_size, STRIP):
                strip, start = MaskStrip(e, self._wave_size, first, self._wave), len(lines)
                strips.append(strip)
                self._write(items, given, strip)
                if not strip.plain or len(lines) - start > MOST_LINES:
                    return None
                lines[start:start] = strip.before_loop
            for index in strips[0].results:
                total = join_masks(e, [strip.ops.text(strip.results[index]) for strip in strips])
                mask = strips[0].masks[index]
                totals[index] = total if mask == FULL else e.let(f"and i{self._wave_size} {total}, {mask}")
        e.lines.extend(lines)
        return totals

    @staticmethod
    def _write(items: list[PutOff], given: Totals, strip: LaneStrip) -> None:
        strip.given = given
        for item in items:
            strip.set_mask(item.mask)
            item.write(strip)

    def _where_likely(self, items: list[PutOff], strip: FullExecStrip, otherwise: str) -> None:
        """Branch to ``otherwise`` unless all lanes are active in all items and the strip's quick checks hold."""
        e, kind = self._emitter, f"i{self._wave_size}"
        likely = [e.let(f"icmp eq {kind} {mask}, -1") for mask in sorted({item.mask for item in items} - {FULL})]
        checks = e.label("checks")
        every = "true"
        for sign in likely + strip.signs():
            every = sign if every == "true" else e.let(f"and i1 {every}, {sign}")
        e.branch(every, checks, otherwise)
        e.place(checks)

    def _in_turn(self, items: list[PutOff], given: Totals, tries: bool) -> Totals:
        """Loops between what is called. ``tries``: also for even lanes."""
        found: Totals = {}
        first = 0
        for place, item in enumerate((*items, None)):
            if item is None or item.call is not None:
                if piece := items[first:place]:
                    known = given | found
                    found |= self._emit_items(piece, known) if tries else self._general(piece, known)
                first = place + 1
            if item is not None and item.call is not None:
                item.call()
        return found

    def _general(self, items: list[PutOff], given: Totals) -> Totals:
        return self.emit_loop(items, given, LaneStrip, self._lanes_of_any(items))

    def emit_loop(self, items: list[PutOff], given: Totals, make: Callable[..., LaneStrip], mask: str = FULL) -> Totals:
        """One loop for all lanes, whose strips ``make`` makes; those that have none of ``mask`` are passed over."""
        loop = self._loop(items, given, make, mask)
        self._emitter.emit(f"br label %{loop.names['before']}")
        return self._emit(loop, loop.strip.before_loop)

    def _lanes_of_any(self, items: list[PutOff]) -> str:
        """Those that some item is for, as a scalar."""
        found, *others = sorted({item.mask for item in items}, key=lambda mask: (mask != FULL, mask))
        for mask in others if found != FULL else ():
            found = self._emitter.let(f"or i{self._wave_size} {found}, {mask}")
        return found

    def _even(self, items: list[PutOff], given: Totals) -> tuple[_Loop[FullExecStrip], str, list[str]] | None:
        """The loop for even lanes, whether its conditions hold, and their code; None if it would not be another."""
        calls, rows = any(item.call for item in items), EVERY_ROW
        while True:
            loop = self._loop(items, given, partial(FullExecStrip, even_rows=rows))
            strip = loop.strip
            if calls and strip.scattered or not strip.accesses and all(item.mask == FULL for item in items):
                return None
            if not strip.root_rows & ~strip.decided:
                break
            rows = strip.decided  # what no address comes from is more likely to be anything
        with self._emitter.divert_lines() as lines:
            holds = strip.complete()
        return loop, holds, lines

    def _loop(self, items: list[PutOff], given: Totals, make: Callable[..., AnyStrip],
              mask: str = FULL) -> _Loop[AnyStrip]:
        emitter = self._emitter
        names = {hint: emitter.label(hint) for hint in ("before", "lanes", "some", "next", "after")}
        lane, pointer = f"%{names['lanes']}.lane", f"%{names['lanes']}.strip"
        sums: Totals = {}
        same: Totals = {}
        with emitter.divert_lines() as body:
            first = names["lanes" if mask == FULL else "some"]
            strip = make(emitter, self._wave_size, lane, pointer, self._wave, first)
            self._write(items, given, strip)
            # A row that is not live in the lanes of the last mask may be in those of an earlier one.
            strip.finish(items[-1].live if len({item.mask for item in items}) == 1 else EVERY_ROW)
            for index, value in strip.results.items():
                if isinstance(value.ref, SameMask):
                    same[index] = strip.before(f"sext i1 {value.ref.flag} to i{self._wave_size}")
                else:
                    sums[index] = self._accumulate(strip.ops.text(value), lane, f"%{names['lanes']}.mask{index}")
        return _Loop(mask, names, strip, body, sums, same)

    def _emit(self, loop: _Loop[Any], before: Iterable[str] = ()) -> Totals:
        """Write the loop, behind ``before``; the caller has written the branch to it."""
        emitter, names = self._emitter, loop.names
        lane = f"%{names['lanes']}.lane"
        emitter.place(names["before"])
        emitter.lines.extend(before)
        emitter.begin(names["lanes"])
        skips = loop.mask != FULL
        totals = {index: f"%{names['next']}.mask{index}" for index in loop.sums} if skips else loop.sums
        self._head(names, lane, totals, names["next"] if skips else loop.strip.label)
        if skips:
            self._skip(loop, lane)
        else:
            emitter.lines.extend(loop.body)
        emitter.emit(f"{lane}.next = add i64 {lane}, {STRIP}")
        emitter.branch(emitter.let(f"icmp ult i64 {lane}.next, {self._wave_size}"), names["lanes"], names["after"])
        emitter.place(names["after"])
        return totals | loop.same

    def _skip(self, loop: _Loop[Any], lane: str) -> None:
        """The body, for strips of which some lane is active: for others it does nothing."""
        emitter, names, kind = self._emitter, loop.names, f"i{self._wave_size}"
        if kind == "i32":
            lane = emitter.let(f"trunc i64 {lane} to i32")
        bits = emitter.let(f"trunc {kind} {emitter.let(f'lshr {kind} {loop.mask}, {lane}')} to i{STRIP}")
        emitter.branch(emitter.let(f"icmp eq i{STRIP} {bits}, 0"), names["next"], names["some"])
        emitter.place(names["some"])
        emitter.lines.extend(loop.body)
        emitter.begin(names["next"])
        for index, total in loop.sums.items():
            was = f"%{names['lanes']}.mask{index}"
            ways = f"[ {was}, %{names['lanes']} ], [ {total}, %{loop.strip.label} ]"
            emitter.emit(f"%{names['next']}.mask{index} = phi {kind} {ways}")

    def _head(self, names: dict[str, str], lane: str, sums: Totals, last: str) -> None:
        """The loop's variables; ``last`` is the label of its last basic block."""
        before, loop = names["before"], names["lanes"]
        self._emitter.emit(f"{lane} = phi i64 [ 0, %{before} ], [ {lane}.next, %{last} ]")
        for index, total in sums.items():
            self._emitter.emit(f"%{loop}.mask{index} = phi i{self._wave_size} [ 0, %{before} ], [ {total}, %{last} ]")
        self._emitter.emit(f"%{loop}.strip = getelementptr i32, ptr {self._wave}, i64 {lane}")

    def _accumulate(self, flags: str, lane: str, phi: str) -> str:
        """OR a strip's mask bits into the loop's running mask."""
        kind = f"i{self._wave_size}"
        bits = self._emitter.let(f"bitcast <{STRIP} x i1> {flags} to i16")
        wide = self._emitter.let(f"zext i16 {bits} to {kind}")
        lane = lane if kind == "i64" else self._emitter.let(f"trunc i64 {lane} to {kind}")
        placed = self._emitter.let(f"shl {kind} {wide}, {lane}")
        return self._emitter.let(f"or {kind} {phi}, {placed}")
