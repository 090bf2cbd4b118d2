"""Matrix instructions of RDNA 3 and later (WMMA, SWMMAC), as data: shapes, and where each element lies.

In: nothing. Out: WaveMatrix rows; and, for a wave of one size, WaveTile. D (16 x 16) = C + A * B. Sources: RDNA 3 ISA,
7.9; RDNA 4 ISA, 7.12, as ROCm's hip-fpsan checks it on gfx1201 (amdgcn_swmmac_gfx12.hpp, the tests of integers) and on
gfx1250 (amdgcn_matrix.hpp, amdgcn_swmmac_gfx1250.hpp); ROCm's rocjitsu has the same.

RDNA 3: A's rows and B's columns lie whole in lanes 0 to 15, and again in every further 16. From RDNA 4 on groups of 16
lanes share out the depth, in runs of at most 16 bytes (32 elements of 6 or 4 bits). Which element of the depth is
which makes no difference where A and B lie alike, but to the order in which products are added. A lane's element of
sparse A meets one of four elements of B in the same lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from luthier_py.base.records import dataclass, replace
from luthier_py.isa.semantics.matrix import BITS, MIXED, ElementPlace, ElementProduct
from luthier_py.isa.semantics.meaning import declare

GROUP = 16  # lanes that have a column each


@dataclass(frozen=True, slots=True)
class WaveMatrix:
    """A's rows x depth times B's depth x 16. Kinds are those of BITS, and iu8 and iu4: the instruction says which."""

    depth: int
    kinds: tuple[str, str]  # of A and of B
    addend: str             # of C
    outcome: str            # of D
    sparse: bool = False
    stages: int = 1
    """Of clamped sums, in each of which as many products are added before they are clamped (GoC's captures of gfx1201:
    one for each half of the depth of SWMMAC)."""
    rows: int = GROUP

    def tile(self, lanes: int, replicated: bool, signs: tuple[bool, bool] = (False, False)) -> WaveTile:
        """In waves of so many lanes. ``signs``: whether integers of A and of B are signed."""
        first, second = (kind.replace("iu", "i" if sign else "u") for kind, sign in zip(self.kinds, signs, strict=True))
        return WaveTile(replace(self, kinds=(first, second)), lanes, replicated)


@dataclass(frozen=True, slots=True)
class WaveTile:
    """Where a WaveMatrix lies in a wave."""

    matrix: WaveMatrix
    lanes: int
    replicated: bool

    @property
    def name(self) -> str:
        """A word for it, which :meth:`parse_name` reads."""
        row, way = self.matrix, "r" if self.replicated else "s" if self.matrix.sparse else "d"
        kinds = "_".join((*row.kinds, row.addend, row.outcome))
        return f"w{way}_{row.rows}x{row.depth}x{self.lanes}x{row.stages}_{kinds}"

    @staticmethod
    def parse_name(name: str) -> WaveTile:
        """The inverse of :attr:`name`; what is compiled for a shape is given that word alone."""
        way, sizes, first, second, addend, outcome = name.split("_")
        rows, depth, lanes, stages = map(int, sizes.split("x"))
        row = WaveMatrix(depth, (first, second), addend, outcome, way == "ws", stages, rows)
        return WaveTile(row, lanes, way == "wr")

    @property
    def kinds(self) -> tuple[str, str]:
        """Kinds of A and of B, as the WaveMatrix has them, but i8 or u8 (i4 or u4) for its iu8 (iu4)."""
        return self.matrix.kinds

    @property
    def addend(self) -> str:
        """Kind of C, which the WaveMatrix says."""
        return self.matrix.addend

    @property
    def outcome(self) -> str:
        """Kind of D, which the WaveMatrix says."""
        return self.matrix.outcome

    @property
    def elements(self) -> tuple[int, int]:
        """Elements in a lane: if replicated, a whole row of A and column of B; else a share of all, but a dword at
        least."""
        depths = self.matrix.depth >> self.matrix.sparse, self.matrix.depth
        if self.replicated:
            return depths
        sizes = (self.matrix.rows * depths[0], GROUP * depths[1])
        fewest = (32 // BITS[kind] for kind in self.kinds)
        first, second = (max(size // self.lanes, few) for size, few in zip(sizes, fewest, strict=True))
        return first, second

    @property
    def results(self) -> int:
        """Elements of D in a lane: of 16 rows 8 in wave32, and 4 in wave64."""
        return self.matrix.rows * GROUP // self.lanes

    def result(self, number: int, lane: int) -> tuple[int, int, int]:
        """(row, column, block) of an element of D; the block is 0. Groups of 16 lanes, which have all columns, take
        turns in rows: one by one on RDNA 3, in runs of 8 (wave64: 4) on later targets."""
        group, column = divmod(lane, GROUP)
        if self.replicated:
            return number * (self.lanes // GROUP) + group, column, 0
        if self.lanes == 64:  # what wave32 has in the upper half of the registers lies in lanes 32 to 63
            return number + 8 * (group & 1) + 4 * (group >> 1), column, 0
        return number // 8 * GROUP + number % 8 + 8 * group, column, 0

    def products(self) -> Iterator[ElementProduct]:
        """Products in ascending order of the depth; of sparse A two for each four elements of B, with the bits that
        choose them."""
        of_a, of_b = self.kinds
        if not self.matrix.sparse:
            for k in range(self.matrix.depth):
                yield ElementProduct(self._place(k, self._per_row, of_a, self.matrix.depth),
                                     self._place(k, self.elements[1], of_b, self.matrix.depth))
            return
        for four in range(self.matrix.depth // 4):
            b = self._place(4 * four, self.elements[1], of_b, self.matrix.depth, 2)
            lane, bit = self.index(four)
            for which in range(2):
                a = self._place(2 * four + which, self.elements[0], of_a, self.matrix.depth // 2)
                yield ElementProduct(a, b, (lane, bit + 2 * which))

    @property
    def _per_row(self) -> int:
        """Elements of one row of A in a lane."""
        return self.elements[0] * GROUP // self.matrix.rows

    def depth_of(self, of_b: bool, number: int, lane: int) -> tuple[int, int]:
        """(place in the depth, which 16 rows) of an element of a lane of wave32, of whole A or B."""
        kind, per_row = self.kinds[of_b], self.elements[1] if of_b else self._per_row
        block, place = divmod(number, per_row)
        run = self._run(per_row, kind)
        turn, inside = divmod(place, run)
        return (2 * turn + lane // GROUP) * run + inside, block

    @staticmethod
    def _run(per_lane: int, kind: str, longer: int = 1) -> int:
        return min(per_lane, longer * (32 if BITS[kind] == 6 else 128 // BITS[kind]))

    def _place(self, k: int, per_lane: int, kind: str, depth: int, longer: int = 1) -> ElementPlace:
        """Of an element of the depth, in row or column 0. Runs of B of sparse matrices are ``longer``."""
        if self.replicated:
            return 0, k
        if self.lanes == 64:
            block, place = divmod(k, per_lane)
            return GROUP * self._group(block, depth // per_lane), place
        run = self._run(per_lane, kind, longer)
        turn, place = divmod(k, run)
        return GROUP * (turn % 2), turn // 2 * run + place

    @staticmethod
    def _group(block: int, blocks: int) -> int:
        """Of wave64: lanes 32 to 63 go on where lanes 0 to 31 end."""
        return (block & 1) << 1 | block >> 1 if blocks == 4 else block

    @property
    def index_bits(self) -> int:
        """Of one instruction, in a lane."""
        return 2 * self.elements[0] if self.lanes == 64 else self.matrix.depth // 2

    def index(self, four: int) -> ElementPlace:
        """(lane of row 0, first bit) that says which of these four elements of the depth are there."""
        group, place = divmod(four, self.index_bits // 4)
        if self.lanes == 64:
            group = self._group(group, self.matrix.depth // 4 // (self.index_bits // 4))
        return GROUP * group, 4 * place

    def locate_left(self, place: ElementPlace, row: int, block: int) -> ElementPlace:
        """The next row is in the next lane; rows from 16 on are further elements of the same lanes."""
        lane, element = place
        return lane + row % GROUP, element + row // GROUP * self._per_row

    def locate_right(self, place: ElementPlace, column: int, block: int) -> ElementPlace:
        """The next column is in the next lane."""
        return place[0] + column, place[1]


@dataclass(frozen=True, slots=True)
class WaveMixedMatrix:
    """A WaveMatrix of depth 128 whose kinds are in the instruction: matrix_a_fmt and matrix_b_fmt.

    ``fewer``: each so many elements of a row of A (a column of B) have a scale: a byte of the scale's register (two, if
    there are 8) in the lane of the row or column, from the lowest on; matrix_a_scale says whether that is of lanes 0 to
    15 or 16 to 31. matrix_a_scale_fmt: 0 an exponent with a bias of 127, 1 UE5M3, 2 fp8.
    """

    fewer: int = 0
    rows: int = GROUP
    kinds: tuple[str, str] | None = None
    """Where the operation says them."""

    def of(self, first: int, second: int) -> WaveMatrix | None:
        """None where there are no such kinds."""
        if self.kinds is None and max(first, second) >= len(MIXED):
            return None
        kinds = self.kinds or (MIXED[first], MIXED[second])
        return WaveMatrix(128, kinds, "f32", "f32", rows=self.rows)


def _dense(name: str, depth: int, first: str, second: str, addend: str, outcome: str) -> None:
    declare(f"V_WMMA_{name}", WaveMatrix(depth, (first, second), addend, outcome))


def _sparse(name: str, depth: int, first: str, second: str, addend: str, stages: int = 1) -> None:
    declare(f"V_SWMMAC_{name}", WaveMatrix(depth, (first, second), addend, addend, True, stages))


_PAIRS = tuple(product(("fp8", "bf8"), repeat=2))
_HALVES = (("F32", "F16"), ("F32", "BF16"), ("F16", "F16"), ("BF16", "BF16"))
# RDNA 3 and 4, and gfx1250's.
for _out, _in in _HALVES:
    for _depth in 16, 32:
        _dense(f"{_out}_16X16X{_depth}_{_in}", _depth, _in.lower(), _in.lower(), _out.lower(), _out.lower())
        _sparse(f"{_out}_16X16X{2 * _depth}_{_in}", 2 * _depth, _in.lower(), _in.lower(), _out.lower())
for _depth, _bits in ((16, 8), (16, 4), (32, 4), (64, 8)):
    _dense(f"I32_16X16X{_depth}_IU{_bits}", _depth, f"iu{_bits}", f"iu{_bits}", "i32", "i32")
for _depth, _bits in ((32, 8), (32, 4), (64, 4), (128, 8)):
    _sparse(f"I32_16X16X{_depth}_IU{_bits}", _depth, f"iu{_bits}", f"iu{_bits}", "i32", 1 if _depth == 128 else 2)
for _first, _second in _PAIRS:
    _names = f"{_first.upper()}_{_second.upper()}"
    for _out, _depths, _sparse_depths in (("F32", (16, 64, 128), (32, 128)), ("F16", (64, 128), (128,))):
        for _depth in _depths:
            _dense(f"{_out}_16X16X{_depth}_{_names}", _depth, _first, _second, _out.lower(), _out.lower())
        for _depth in _sparse_depths:
            _sparse(f"{_out}_16X16X{_depth}_{_names}", _depth, _first, _second, _out.lower())
_dense("F32_16X16X4_F32", 4, "f32", "f32", "f32", "f32")
_dense("BF16F32_16X16X32_BF16", 32, "bf16", "bf16", "f32", "bf16")
declare("V_WMMA_F32_16X16X128_F8F6F4", WaveMixedMatrix())
declare("V_WMMA_F32_32X16X128_F4", WaveMatrix(128, ("fp4", "fp4"), "f32", "f32", rows=32))
for _word, _fewer in (("", 32), ("16", 16)):
    declare(f"V_WMMA_SCALE{_word}_F32_16X16X128_F8F6F4", WaveMixedMatrix(_fewer))
    declare(f"V_WMMA_SCALE{_word}_F32_32X16X128_F4", WaveMixedMatrix(_fewer, 32, ("fp4", "fp4")))
