"""The strip that is open while a block is translated, and the code that it becomes.

In: vector instructions with their EXEC, and accesses that are calls. Out: loops over chunks of lanes between the calls.
Where it may pay (``even``), there is another loop for all, accesses too: for a wave whose lanes are all active, where
addresses follow each other. Invariant: both leave the same, and that one is entered where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from luthier_py.emulator.emitter import Emitter
from luthier_py.emulator.even_chunk import EvenChunk
from luthier_py.emulator.forms import ItemForm
from luthier_py.emulator.layout import CHUNK
from luthier_py.emulator.progressions import SameMask
from luthier_py.emulator.scalars import Scalars
from luthier_py.emulator.strip import FULL, ChunkWrite, LaneChunk
from luthier_py.isa.semantics.algebra import U32, Type, Value

EVERY_ROW = -1
Totals = dict[int, str]
"""Masks that were computed, by their scalar register."""
Afterwards = Callable[[], None]
AnyChunk = TypeVar("AnyChunk", bound=LaneChunk)


@dataclass(frozen=True, slots=True)
class PutOff:
    """An instruction under the EXEC ``mask``, which writes the scalar registers ``masks``; then rows ``live`` can be
    read. What is part of loops for even lanes only has ``call``, which does it elsewhere, and ``done``, which is to
    follow such a loop."""

    mask: str
    write: ChunkWrite
    live: int
    masks: tuple[int, ...]
    form: ItemForm | None
    call: Afterwards | None = None
    done: Afterwards | None = None


@dataclass(frozen=True, slots=True)
class _Loop(Generic[AnyChunk]):
    """One that is not emitted yet: ``sums`` are masks at the end of its body, ``same`` those that are known before."""

    names: dict[str, str]
    chunk: AnyChunk
    body: list[str]
    sums: Totals
    same: Totals


class Strip:
    """Mutable: the vector instructions of the current block that have been put off."""

    def __init__(self, emitter: Emitter, wave: str, wave_size: int, even: bool) -> None:
        self._emitter = emitter
        self._wave = wave
        self._wave_size = wave_size
        self._tries = even
        self._items: list[PutOff] = []
        self.masks: set[int] = set()
        """Scalar registers where a mask result of the open strip will go."""

    def add(self, exec_mask: Value, write: ChunkWrite, live: int, masks: tuple[int, ...] = (),
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
        for index, total in self._written(items, {}).items():
            scalars.write(index, Value(scalars.ops, Type(U32.kind, self._wave_size), total))

    def _written(self, items: list[PutOff], given: Totals) -> Totals:
        """``given``: masks that instructions before them have computed."""
        even = self._even(items, given) if self._tries else None
        if even is None:
            return self._in_turn(items, given, any(item.call for item in items))
        e, (loop, conditions) = self._emitter, even
        general, end, met = (e.label(hint) for hint in ("general", "uneven", "met"))
        self._where_likely(items, loop.chunk, general)
        e.lines.extend(loop.chunk.before_loop)
        e.lines.extend(conditions)
        self._go_where(loop.chunk.guards, loop.names["before"], general)
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

    def _where_likely(self, items: list[PutOff], chunk: EvenChunk, otherwise: str) -> None:
        """Go on where all lanes are active in all items, and a look at some does not show that others are not even."""
        e, kind = self._emitter, f"i{self._wave_size}"
        likely = [e.let(f"icmp eq {kind} {mask}, -1") for mask in sorted({item.mask for item in items} - {FULL})]
        checks = e.label("checks")
        self._go_where(likely + chunk.signs(), checks, otherwise)
        e.place(checks)

    def _go_where(self, conditions: list[str], then: str, otherwise: str) -> None:
        e, every = self._emitter, "true"
        for condition in conditions:
            every = condition if every == "true" else e.let(f"and i1 {every}, {condition}")
        e.branch(every, then, otherwise)

    def _in_turn(self, items: list[PutOff], given: Totals, tries: bool) -> Totals:
        """Loops between what is called. ``tries``: also for even lanes."""
        found: Totals = {}
        first = 0
        for place, item in enumerate((*items, None)):
            if item is None or item.call is not None:
                if piece := items[first:place]:
                    known = given | found
                    found |= self._written(piece, known) if tries else self._general(piece, known)
                first = place + 1
            if item is not None and item.call is not None:
                item.call()
        return found

    def _general(self, items: list[PutOff], given: Totals) -> Totals:
        return self.looped(items, given, LaneChunk)

    def looped(self, items: list[PutOff], given: Totals, make: Callable[..., LaneChunk]) -> Totals:
        """One loop for all lanes, whose chunks ``make`` makes."""
        loop = self._loop(items, given, make)
        self._emitter.emit(f"br label %{loop.names['before']}")
        return self._emit(loop, loop.chunk.before_loop)

    def _even(self, items: list[PutOff], given: Totals) -> tuple[_Loop[EvenChunk], list[str]] | None:
        """The loop for even lanes, and the code of its conditions; None if it would not be another."""
        calls, rows = any(item.call for item in items), EVERY_ROW
        while True:
            loop = self._loop(items, given, partial(EvenChunk, even_rows=rows))
            chunk = loop.chunk
            if calls and chunk.scattered or not chunk.accesses and all(item.mask == FULL for item in items):
                return None
            if not chunk.root_rows & ~chunk.decided:
                break
            rows = chunk.decided  # what no address comes from is more likely to be anything
        with self._emitter.diverted() as lines:
            chunk.complete()
        return loop, lines

    def _loop(self, items: list[PutOff], given: Totals, make: Callable[..., AnyChunk]) -> _Loop[AnyChunk]:
        emitter = self._emitter
        names = {hint: emitter.label(hint) for hint in ("before", "lanes", "after")}
        lane, pointer = f"%{names['lanes']}.lane", f"%{names['lanes']}.chunk"
        sums: Totals = {}
        same: Totals = {}
        with emitter.diverted() as body:
            chunk = make(emitter, self._wave_size, lane, pointer, self._wave, names["lanes"])
            chunk.given = given
            for item in items:
                chunk.set_mask(item.mask)
                item.write(chunk)
            # A row that is not live in the lanes of the last mask may be in those of an earlier one.
            chunk.finish(items[-1].live if len({item.mask for item in items}) == 1 else EVERY_ROW)
            for index, value in chunk.results.items():
                if isinstance(value.ref, SameMask):
                    same[index] = chunk.before(f"sext i1 {value.ref.flag} to i{self._wave_size}")
                else:
                    sums[index] = self._accumulate(chunk.ops.text(value), lane, f"%{names['lanes']}.mask{index}")
        return _Loop(names, chunk, body, sums, same)

    def _emit(self, loop: _Loop[Any], before: Iterable[str] = ()) -> Totals:
        """Write the loop, behind ``before``; somebody branches there."""
        emitter, names = self._emitter, loop.names
        lane = f"%{names['lanes']}.lane"
        emitter.place(names["before"])
        emitter.lines.extend(before)
        emitter.begin(names["lanes"])
        self._head(names, lane, loop.sums, loop.chunk.label)
        emitter.lines.extend(loop.body)
        emitter.emit(f"{lane}.next = add i64 {lane}, {CHUNK}")
        emitter.branch(emitter.let(f"icmp ult i64 {lane}.next, {self._wave_size}"), names["lanes"], names["after"])
        emitter.place(names["after"])
        return loop.sums | loop.same

    def _head(self, names: dict[str, str], lane: str, sums: Totals, last: str) -> None:
        """The loop's variables; ``last`` is the label of its last basic block."""
        before, loop = names["before"], names["lanes"]
        self._emitter.emit(f"{lane} = phi i64 [ 0, %{before} ], [ {lane}.next, %{last} ]")
        for index, total in sums.items():
            self._emitter.emit(f"%{loop}.mask{index} = phi i{self._wave_size} [ 0, %{before} ], [ {total}, %{last} ]")
        self._emitter.emit(f"%{loop}.chunk = getelementptr i32, ptr {self._wave}, i64 {lane}")

    def _accumulate(self, flags: str, lane: str, phi: str) -> str:
        """OR a chunk's mask bits into the loop's running mask."""
        kind = f"i{self._wave_size}"
        bits = self._emitter.let(f"bitcast <{CHUNK} x i1> {flags} to i16")
        wide = self._emitter.let(f"zext i16 {bits} to {kind}")
        lane = lane if kind == "i64" else self._emitter.let(f"trunc i64 {lane} to {kind}")
        placed = self._emitter.let(f"shl {kind} {wide}, {lane}")
        return self._emitter.let(f"or {kind} {phi}, {placed}")
