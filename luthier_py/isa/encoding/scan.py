"""A whole text section at once: where instructions start, which ones they are, and their fields, as NumPy arrays.

In: code. Out: Scan. How: a few bits distinguish rows, and which ones depends on the top nine. Those bits
are the key of a hash table from keys to rows; the decoder fills it as new keys are met. Every dword of the code is
looked up, whether an instruction starts there or not; then lengths are followed from the first. Instructions with the
same bytes are of one kind, and whatever depends on bytes alone is worked out for kinds.
Invariant: boundaries, rows and fields are those that decoding one instruction after the other gives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from luthier_py.base.errors import Malformed
from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.constants import LITERAL, LITERAL64
from luthier_py.isa.encoding.decode import PREFIX_SHIFT, Decoder, Format, OperandMemo
from luthier_py.isa.encoding.instruction import OpInfo
from luthier_py.isa.encoding.table import Row

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
UNKNOWN = -1          # no instruction: one dword
NOT_MET = -2
PROBES = 8
DWORDS = 8            # of the longest encoding with its literal
FEW = 64              # so many and fewer are followed one by one
_FREE = np.uint64(0xFFFFFFFFFFFFFFFF)
_MULTIPLIER = 0x9E3779B97F4A7C15
_NOT_ASKED, _RIGHT, _RESERVED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Fields:
    """Kinds whose operands lie at the same bits."""

    op: OpInfo         # one of their rows; names and segments of the operands are the same for all
    positions: Array   # which kinds they are
    values: Array      # raw field values, one row for each operand


@dataclass(frozen=True, slots=True)
class Scan:
    """The instructions of one piece of code, in order, and what is distinct among them: kinds."""

    offsets: Array     # in bytes
    kinds: Array       # which kind each is
    kind_first: Array  # where a kind occurs first: its offset
    kind_sizes: Array  # in bytes, with literals
    kind_rows: Array   # row of the table, or UNKNOWN for a dword that starts no instruction
    kind_flags: Array  # bits of OpFlag; none where there is no row
    groups: tuple[Fields, ...]

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def sizes(self) -> Array:
        """Size of each instruction in bytes, with its literal."""
        return self.kind_sizes[self.kinds]

    @property
    def rows(self) -> Array:
        """The table's row of each instruction, or UNKNOWN."""
        return self.kind_rows[self.kinds]


class Scanner:
    """Scans code of one target and wave size; what it learns stays."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        rows = decoder.table.rows
        self.masks = _key_masks(rows)
        self.sizes = np.array([row.size_bytes // 4 for row in rows] + [1], np.uint8)
        self.flags = np.array([row.flags for row in rows] + [0], np.int64)
        self.shapes = np.array([row.shape for row in rows] + [-1], np.int16)
        self.literals = np.full(len(rows) + 1, -1, np.int8)  # number of the literal pattern, when the row was met
        self.patterns: list[tuple[tuple[int, int, int], ...]] = [()]
        self.answers: dict[int, Array] = {}  # id of a slot -> whether its field values are right
        self.keys = KeyTable(wide=bool(self.masks[2:].any()))

    def scan(self, code: bytes | memoryview, starts: Sequence[int] = ()) -> Scan:
        """``code`` from its first byte on; a tail that is shorter than a dword is left out. At each of ``starts``,
        offsets in bytes, an instruction starts, even if that cuts another off, which then is none."""
        count = len(code) // 4
        words = np.zeros(count + DWORDS, np.uint32)
        words[:count] = np.frombuffer(code, "<u4", count)
        rows = self._rows(words, count)
        lengths = self._lengths(words, rows)
        for start in starts:
            _cut(rows, lengths, start // 4)
        while True:
            places = _follow(lengths)
            first, kinds = _distinct_code(words, places, lengths[places] * (rows[places] != UNKNOWN))
            groups = tuple(self._groups(words, rows, first))
            bad = np.zeros(len(first), bool)
            for group in groups:
                bad[group.positions[self._find_reserved(group)]] = True
            wrong = places[bad[kinds]] if bad.any() else places[:0]
            if count and places[-1] + lengths[places[-1]] > count:
                wrong = np.append(wrong, places[-1])
            if not len(wrong):
                return Scan(places * 4, kinds, first * 4, lengths[first].astype(np.int64) * 4, rows[first],
                            self.flags[rows[first]], groups)
            rows[wrong], lengths[wrong] = UNKNOWN, 1

    def _rows(self, words: Array, count: int) -> Array:
        """The row of each dword, were it the first of an instruction."""
        prefix = words[:count] >> np.uint32(PREFIX_SHIFT)
        dwords = [words[k:count + k] & self.masks[k][prefix] for k in range(4 if self.keys.wide else 2)]
        keys = [dwords[k + 1].astype(np.uint64) << np.uint64(32) | dwords[k] for k in range(0, len(dwords), 2)]
        rows = self.keys.find(keys)
        missing = np.flatnonzero(rows == NOT_MET)
        if len(missing):
            keys = [part[missing] for part in keys]
            for new in _distinct(keys):
                self._learn(new)
            rows[missing] = self.keys.find(keys)
        return rows

    def _learn(self, key: list[int]) -> None:
        word = key[0] | (key[1] << 64 if len(key) > 1 else 0)
        row = next((rows[word & mask] for mask, rows in self.decoder.by_prefix[word >> PREFIX_SHIFT & 0x1FF]
                    if word & mask in rows), UNKNOWN)
        self.keys.add(key, row)
        if row != UNKNOWN and self.literals[row] < 0:
            self.literals[row] = self._pattern(row)

    def _pattern(self, row: int) -> int:
        """Where the sources are whose fields may say that a literal follows."""
        op = self.decoder.format(row).op
        pattern = tuple((first // 32, first % 32, (1 << width) - 1)
                        for first, width, _ in (op.operands[place].segments[0] for place in op.literals))
        if pattern not in self.patterns:
            self.patterns.append(pattern)
        return self.patterns.index(pattern)

    def _lengths(self, words: Array, rows: Array) -> Array:
        """In dwords, with literals."""
        lengths = self.sizes[rows]
        kinds = self.literals[rows]
        for number, pattern in enumerate(self.patterns[1:], 1):
            here = np.flatnonzero(kinds == number)
            extra = np.zeros(len(here), np.uint8)
            for dword, shift, mask in pattern:
                values = words[here + dword] >> np.uint32(shift) & np.uint32(mask)
                extra[(values == LITERAL) & (extra == 0)] = 1
                if self.decoder.target.literals64:
                    extra[values == LITERAL64] = 2
            lengths[here] += extra
        return lengths

    def _groups(self, words: Array, rows: Array, starts: Array) -> Iterator[Fields]:
        shapes = self.shapes[rows[starts]]
        order = np.argsort(shapes, kind="stable")
        bounds = np.flatnonzero(np.diff(shapes[order], prepend=-2, append=-2))
        for first, last in zip(bounds[:-1], bounds[1:], strict=True):
            positions = order[first:last]
            row = int(rows[starts[positions[0]]])
            if row != UNKNOWN:
                op = self.decoder.format(row).op
                yield Fields(op, positions, _extract(words, starts[positions], op))

    def _find_reserved(self, group: Fields) -> Array:
        """Places in the group where a field has a value that the decoder refuses."""
        form = self.decoder.format(group.op.row)
        if form.image is not None or form.formats or form.shared_literal is not None:
            return self._find_refused(form, group)
        bad = np.zeros(len(group.positions), bool)
        for slot, values in zip(form.slots, group.values, strict=True):
            if slot.info.kind not in ("imm", "branch"):
                bad |= self._classify_values(slot, values) == _RESERVED
        if self.decoder.target.literals64 and len(group.op.literals) > 1:
            sources = group.values[list(group.op.literals)]
            bad |= (sources == LITERAL).any(axis=0) & (sources == LITERAL64).any(axis=0)
        return np.flatnonzero(bad)

    def _classify_values(self, slot: OperandMemo, values: Array) -> Array:
        known = self.answers.get(id(slot))
        if known is None:
            known = self.answers[id(slot)] = np.zeros(1 << 10, np.uint8)
        answers = known[values]
        for value in np.unique(values[answers == _NOT_ASKED]).tolist():
            known[value] = _RIGHT if _is_right(slot, value, self.decoder.target.literals64) else _RESERVED
        return known[values]

    def _find_refused(self, form: Format, group: Fields) -> Array:
        """The same for rows whose operands depend on each other: ask the decoder."""
        bad = []
        for place, fields in enumerate(group.values.T.tolist()):
            try:
                self.decoder.operands(form, fields, None)
            except Malformed:
                bad.append(place)
        return np.array(bad, np.int64)


class KeyTable:
    """A hash table with open addressing from keys of one or two 64-bit parts to rows."""

    def __init__(self, wide: bool, bits: int = 14) -> None:
        self.wide = wide
        self.bits = bits
        self.keys = [np.full((1 << bits) + PROBES, _FREE, np.uint64) for _ in range(1 + wide)]
        self.rows = np.full((1 << bits) + PROBES, NOT_MET, np.int32)

    def find(self, keys: list[Array]) -> Array:
        """The row of each key, or NOT_MET."""
        mixed = keys[0] if not self.wide else keys[0] ^ keys[1] << np.uint64(7)
        places = (mixed * np.uint64(_MULTIPLIER)) >> np.uint64(64 - self.bits)
        rows = self._at(places, keys)
        for probe in range(1, PROBES):
            missing = np.flatnonzero(rows == NOT_MET)
            if not len(missing):
                break
            rows[missing] = self._at(places[missing] + np.uint64(probe), [part[missing] for part in keys])
        return rows

    def _at(self, places: Array, keys: list[Array]) -> Array:
        same = self.keys[0][places] == keys[0]
        if self.wide:
            same &= self.keys[1][places] == keys[1]
        return np.where(same, self.rows[places], NOT_MET)

    def add(self, key: list[int], row: int) -> None:
        """Enter a key that is not in the table yet. Where PROBES places from its first one on are taken, the table
        becomes four times as large."""
        mixed = key[0] ^ (key[1] << 7 if self.wide else 0)
        place = (mixed * _MULTIPLIER & (1 << 64) - 1) >> 64 - self.bits
        probes = self.rows[place:place + PROBES].tolist()
        if NOT_MET in probes:
            place += probes.index(NOT_MET)
            for part, value in zip(self.keys, key, strict=True):
                part[place] = value
            self.rows[place] = row
        else:
            self._grow()
            self.add(key, row)

    def _grow(self) -> None:
        used = np.flatnonzero(self.rows != NOT_MET)
        keys, rows = zip(*(part[used].tolist() for part in self.keys), strict=True), self.rows[used].tolist()
        KeyTable.__init__(self, self.wide, self.bits + 2)
        for key, row in zip(keys, rows, strict=True):
            self.add(list(key), row)


def _distinct(keys: list[Array]) -> list[list[int]]:
    """Each key once."""
    if len(keys) == 1:  # ten times as fast as the general case
        return [[key] for key in np.unique(keys[0]).tolist()]
    found: list[list[int]] = np.unique(np.stack(keys), axis=1).T.tolist()
    return found


def _key_masks(rows: tuple[Row, ...]) -> Array:
    """For each dword and value of the top nine bits: the bits that any of the rows fixes."""
    masks = np.zeros((4, 512), np.uint32)
    fixed: defaultdict[tuple[int, int], int] = defaultdict(int)  # of rows with one prefix together, as there are many
    for row in rows:
        fixed[row.mask >> PREFIX_SHIFT & 0x1FF, row.value >> PREFIX_SHIFT & 0x1FF] |= row.mask
    for (mask, value), bits in fixed.items():
        matching = (np.arange(512) & mask) == value
        for dword in range(4):
            masks[dword, matching] |= np.uint32(bits >> 32 * dword & 0xFFFFFFFF)
    masks[0] |= np.uint32(0x1FF << PREFIX_SHIFT)
    return masks


def _is_right(slot: OperandMemo, value: int, literals64: bool) -> bool:
    if slot.takes_literal and (value == LITERAL or value == LITERAL64 and literals64):
        return True
    try:
        slot[value]
    except Malformed:
        return False
    return True


def _cut(rows: Array, lengths: Array, start: int) -> None:
    """What would reach over ``start`` is no instruction."""
    before = np.arange(max(start - DWORDS + 1, 0), start)
    over = before[before + lengths[before] > start]
    rows[over], lengths[over] = UNKNOWN, 1


def _follow(lengths: Array) -> Array:
    """Starts of instructions, each at the end of the one before."""
    count = len(lengths)
    found = np.ones(count, bool)  # first those that nothing before them could cover, whatever starts where
    for distance in range(1, min(DWORDS, count)):
        found[distance:] &= lengths[: count - distance] <= distance
    front = np.flatnonzero(found)
    while len(front) > FEW:
        front = front + lengths[front]
        front = front[front < count]
        front = front[~found[front]]
        found[front] = True
    for place in front.tolist():
        while (place := place + int(lengths[place])) < count and not found[place]:
            found[place] = True
    return np.flatnonzero(found)


def _distinct_code(words: Array, starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Where each kind of instruction occurs first, and for each start its kind; what has length 0 is one kind."""
    kinds = np.zeros(len(starts), np.int64)
    first: list[Array] = []
    known = 0
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        places = np.flatnonzero(lengths == length)
        here = starts[places]
        if length == 0:
            at, which = np.zeros(1, np.int64), np.zeros(len(places), np.int64)
        elif length == 1:
            _, at, which = np.unique(words[here], return_index=True, return_inverse=True)
        elif length == 2:
            keys = words[here].astype(np.uint64) << np.uint64(32) | words[here + 1]
            _, at, which = np.unique(keys, return_index=True, return_inverse=True)
        else:
            keys = np.ascontiguousarray(np.stack([words[here + k] for k in range(length)], axis=1))
            _, at, which = np.unique(keys.view(f"V{4 * length}").ravel(), return_index=True, return_inverse=True)
        kinds[places] = which + known
        first.append(here[at])
        known += len(at)
    return (np.concatenate(first) if first else np.zeros(0, np.int64)), kinds


def _extract(words: Array, starts: Array, op: OpInfo) -> Array:
    dwords = [words[starts + k] for k in range(op.size_bytes // 4)]
    wide = any(width > 32 for info in op.operands for _, width, _ in info.segments)
    values = np.zeros((len(op.operands), len(starts)), np.uint64 if wide else np.uint32)
    for place, info in enumerate(op.operands):
        for first, width, at in info.segments:
            if width > 32:
                values[place] |= _bits(dwords, first + 32, width - 32).astype(np.uint64) << np.uint64(at + 32)
            values[place] |= _bits(dwords, first, min(width, 32)) << np.uint32(at)
    return values


def _bits(dwords: list[Array], first: int, width: int) -> Array:
    """Bits that may lie across two dwords."""
    shift = first % 32
    low: Array = dwords[first // 32] >> np.uint32(shift)
    if shift + width > 32:
        low = low | dwords[first // 32 + 1] << np.uint32(32 - shift)
    low &= np.uint32((1 << width) - 1)
    return low
