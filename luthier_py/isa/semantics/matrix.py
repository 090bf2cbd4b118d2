"""Matrix instructions of CDNA (MFMA, SMFMAC), as data: shapes, and where each element lies.

In: nothing. Out: Matrix rows. D = C + A * B for ``blocks`` independent products. Source: AMD Instinct
MI200 ISA, chapter 7 and 12.13, and AMD's matrix instruction calculator for the layouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple, Protocol

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.meaning import declare

WAVE = 64
BITS = {"f64": 64, "f32": 32, "xf32": 32, "i32": 32, "f16": 16, "bf16": 16, "i8": 8, "u8": 8, "fp8": 8, "bf8": 8,
        "fp6": 6, "bf6": 6, "i4": 4, "u4": 4, "fp4": 4}
"""Of an element of each kind."""

ElementPlace = tuple[int, int]


class ElementProduct(NamedTuple):
    """One product of each element's sum. Places are (lane, element) in row 0 of A and column 0 of B."""

    a: ElementPlace
    b: ElementPlace
    selector: ElementPlace | None = None
    """Of sparse A, (lane, first bit) in row 0: two bits, which element from ``b`` on it is."""


class MatrixLayout(Protocol):
    """What code for a shape asks of it."""

    @property
    def name(self) -> str: ...
    @property
    def lanes(self) -> int:
        """The lanes of a wave."""
        ...
    @property
    def kinds(self) -> tuple[str, str]:
        """The element types of A and of B."""
        ...
    @property
    def elements(self) -> tuple[int, int]:
        """The number of elements of A and of B in a lane."""
        ...
    @property
    def addend(self) -> str:
        """Kind of C."""
        ...
    @property
    def outcome(self) -> str:
        """Kind of D."""
        ...
    @property
    def results(self) -> int:
        """Elements of D in a lane."""
        ...
    def result(self, number: int, lane: int) -> tuple[int, int, int]:
        """(row, column, block) of an element of D."""
        ...
    def products(self) -> Iterator[ElementProduct]:
        """Products in the order in which they are added."""
        ...
    def locate_left(self, place: ElementPlace, row: int, block: int) -> ElementPlace:
        """Where A has in that row what row 0 has in ``place``."""
        ...
    def locate_right(self, place: ElementPlace, column: int, block: int) -> ElementPlace:
        """The same of a column of B."""
        ...


@dataclass(frozen=True, slots=True)
class Matrix:
    """D (rows x columns) += A (rows x depth) * B (depth x columns), in each of ``blocks`` blocks."""

    rows: int
    columns: int
    depth: int
    blocks: int
    kind: str        # of A and B: f32, xf32, f16, bf16, i8, f64, fp8, bf8, fp6, bf6, fp4; D is f32, i32 or f64
    per_lane: int    # consecutive elements of the depth that one lane holds
    kind_of_b: str = ""  # where it is another one

    @property
    def name(self) -> str:
        """A word for it, which :meth:`parse_name` reads."""
        kinds = "_".join((self.kind, self.kind_of_b)) if self.kind_of_b else self.kind
        return f"{self.rows}x{self.columns}x{self.depth}x{self.blocks}x{self.per_lane}_{kinds}"

    @staticmethod
    def parse_name(name: str) -> Matrix:
        """The inverse of :attr:`name`; what is compiled for a shape is given that word alone."""
        sizes, kind, *other = name.split("_")
        rows, columns, depth, blocks, per_lane = map(int, sizes.split("x"))
        return Matrix(rows, columns, depth, blocks, kind, per_lane, *other)

    @property
    def kinds(self) -> tuple[str, str]:
        """The element types of A and of B."""
        return self.kind, self.kind_of_b or self.kind

    @property
    def lanes(self) -> int:
        """Lanes of a wave: 64, since CDNA has no others."""
        return WAVE

    @property
    def elements(self) -> tuple[int, int]:
        """Elements in a lane: as many of B as of A."""
        return self.per_lane, self.per_lane

    @property
    def addend(self) -> str:
        """Kind of C: i32 where A has i8, f64 where it has f64, f32 elsewhere."""
        return {"i8": "i32", "f64": "f64"}.get(self.kind, "f32")

    @property
    def outcome(self) -> str:
        """Kind of D, which is that of C."""
        return self.addend

    @property
    def results(self) -> int:
        """Elements of D in each lane."""
        return self.rows * self.columns * self.blocks // WAVE

    def products(self) -> Iterator[ElementProduct]:
        """Products in ascending order of the depth; the order of the hardware is not documented
        (`ImplementationDefined.SUM`)."""
        for k in range(self.depth):
            first, second = (self.source(0, k, 0, kind) for kind in self.kinds)
            yield ElementProduct(first, second)

    def locate_left(self, place: ElementPlace, row: int, block: int) -> ElementPlace:
        """The next row is in the next lane, the next block as many lanes further as there are rows."""
        return place[0] + row + self.rows * block, place[1]

    def locate_right(self, place: ElementPlace, column: int, block: int) -> ElementPlace:
        """As for rows of A: these shapes have as many columns as rows."""
        return self.locate_left(place, column, block)

    def source(self, number: int, k: int, block: int, kind: str = "") -> tuple[int, int]:
        """(lane, element) of A[number][k] or B[k][number], whose ``kind`` it is; 32 bytes are two runs of 16."""
        run = 16 if self.per_lane == 32 and kind in ("fp8", "bf8") else self.per_lane
        lane, lanes = number + self.rows * block, self.rows * self.blocks
        before, place = divmod(k, run)
        turn, group = divmod(before, WAVE // lanes)
        return lane + lanes * group, turn * run + place

    def result(self, register: int, lane: int) -> tuple[int, int, int]:
        """(row, column, block) of the element of D in ``register`` of ``lane``."""
        group, column = divmod(lane, self.columns)
        if self.kind == "f64":
            if self.rows == 4:
                return lane // 16, column, group % 4
            return 4 * register + group, column, 0
        if self.rows == 4:
            return register, column, group
        groups = WAVE // self.columns
        per_block = self.rows * self.columns // WAVE
        inside = register % per_block
        return inside % 4 + 4 * group + 4 * groups * (inside // 4), column, register // per_block


@dataclass(frozen=True, slots=True)
class MixedMatrix:
    """A Matrix whose kinds are in the instruction: CBSZ says that of A, BLGP that of B (CDNA4 ISA, V_MFMA_F8F6F4).

    ``scaled``: each 32 elements of a row of A (a column of B) have an exponent, with a bias of 127: a byte, which
    op_sel and op_sel_hi choose, of the scale's register in lane row + size * (k // 32).
    """

    size: int
    scaled: bool = False

    def of(self, cbsz: int, blgp: int) -> Matrix | None:
        """None where there are no such kinds."""
        if max(cbsz, blgp) >= len(MIXED):
            return None
        depth = 2048 // self.size
        first, second = MIXED[cbsz], MIXED[blgp]
        return Matrix(self.size, self.size, depth, 1, first, 32, "" if first == second else second)


MIXED = ("fp8", "bf8", "fp6", "bf6", "fp4")


@dataclass(frozen=True, slots=True)
class _Derived:
    """Like a Matrix but for what a subclass says."""

    matrix: Matrix

    @property
    def lanes(self) -> int:
        return WAVE

    @property
    def kinds(self) -> tuple[str, str]:
        return self.matrix.kinds

    @property
    def elements(self) -> tuple[int, int]:
        return self.matrix.elements

    @property
    def addend(self) -> str:
        return self.matrix.addend

    @property
    def outcome(self) -> str:
        return self.matrix.outcome

    @property
    def results(self) -> int:
        return self.matrix.results

    def result(self, number: int, lane: int) -> tuple[int, int, int]:
        return self.matrix.result(number, lane)

    def products(self) -> Iterator[ElementProduct]:
        return self.matrix.products()

    def locate_left(self, place: ElementPlace, row: int, block: int) -> ElementPlace:
        return self.matrix.locate_left(place, row, block)

    def locate_right(self, place: ElementPlace, column: int, block: int) -> ElementPlace:
        return self.matrix.locate_right(place, column, block)


@dataclass(frozen=True, slots=True)
class BroadcastMatrix(_Derived):
    """A Matrix whose A and B come from other lanes (matrix instruction calculator, CBSZ, ABID and BLGP): of 2 ** cbsz
    blocks that lie together all take A's block ``abid``; B is moved between lanes as a whole."""

    cbsz: int
    abid: int
    blgp: int

    @property
    def exists(self) -> bool:
        """Whether the hardware has these settings: the blocks that share A are no more than all, and ABID is one of
        them."""
        return 1 << self.cbsz <= self.matrix.blocks and self.abid < 1 << self.cbsz

    @property
    def name(self) -> str:
        return f"c{self.cbsz}a{self.abid}b{self.blgp}_{self.matrix.name}"

    @staticmethod
    def parse_name(name: str) -> BroadcastMatrix:
        fields, rest = name.split("_", 1)
        cbsz, others = fields[1:].split("a")
        abid, blgp = others.split("b")
        return BroadcastMatrix(Matrix.parse_name(rest), int(cbsz), int(abid), int(blgp))

    def locate_left(self, place: ElementPlace, row: int, block: int) -> ElementPlace:
        return self.matrix.locate_left(place, row, (block >> self.cbsz << self.cbsz) + self.abid)

    def locate_right(self, place: ElementPlace, column: int, block: int) -> ElementPlace:
        lane, element = self.matrix.locate_right(place, column, block)
        if self.blgp == 3:
            return (lane + 16) % WAVE, element
        if self.blgp in (1, 2):
            return lane % 32 + 32 * (self.blgp - 1), element
        return (lane % 16 + 16 * (self.blgp - 4) if self.blgp else lane), element


@dataclass(frozen=True, slots=True)
class SparseMatrix(_Derived):
    """D += A * B, where of four consecutive elements of A's depth two are there, and the others zero. ``matrix`` is as
    if A were whole.

    A lane holds half as many elements of A as of B. Those of a pair stand for two of four: which, two bits for each
    say in the lane's index, from the lowest on. CBSZ 0: ABID says at which of the parts of the index (CDNA3 ISA, 7.3).
    Of CDNA 4's shapes with 256 bits of B in a lane, pairs and fours lie in different lanes: ROCm's hip-fpsan found
    out which on an MI350 (amdgcn_smfmac.hpp; rocjitsu has the same).
    """

    @property
    def name(self) -> str:
        return f"s_{self.matrix.name}"

    @property
    def elements(self) -> tuple[int, int]:
        return self.per_lane, self.matrix.per_lane

    @property
    def per_lane(self) -> int:
        """Elements of A."""
        return self.matrix.per_lane // 2

    @property
    def index_bits(self) -> int:
        """Of one instruction."""
        return 2 * self.per_lane

    def first_bit(self, cbsz: int, abid: int) -> int:
        """Of the index."""
        return 0 if cbsz else abid * self.index_bits % 32

    def products(self) -> Iterator[ElementProduct]:
        for four in range(self.matrix.depth // 4):
            (group, pair), (other, first) = self.pair(four), self.four(four)
            for element in range(2 * pair, 2 * pair + 2):
                lane = self.matrix.rows * group
                yield ElementProduct((lane, element), (self.matrix.rows * other, first), (lane, 2 * element))

    @property
    def _wide(self) -> bool:
        return self.matrix.per_lane * BITS[self.matrix.kind] == 256

    def pair(self, four: int) -> ElementPlace:
        """(group of lanes, number of the pair in a lane) of A, for four elements of the depth."""
        if not self._wide or BITS[self.matrix.kind] == 16:
            return divmod(four, self.per_lane // 2)
        bits = [four >> place & 1 for place in range(5)]
        if self.matrix.rows == 16:
            return 2 * bits[4] + bits[2], 4 * bits[1] + 2 * bits[3] + bits[0]
        return bits[3], 4 * bits[1] + 2 * bits[2] + bits[0]

    def four(self, four: int) -> ElementPlace:
        """(group of lanes, first element) of B."""
        if not self._wide:
            return divmod(4 * four, self.matrix.per_lane)
        run, groups = 8, WAVE // self.matrix.rows
        turn, place = divmod(4 * four, run)
        return turn % groups, turn // groups * run + place


# Depth of the shapes (32x32, 16x16, 4x4) with many blocks, and of those with one block.
_KINDS = {"F32": ("f32", 1), "F16": ("f16", 4), "BF16": ("bf16", 2), "BF16_1K": ("bf16", 4), "I8": ("i8", 4)}
for _word, (_kind, _per_lane) in _KINDS.items():
    _out = "I32" if _kind == "i8" else "F32"
    for _size in 32, 16, 4:
        _blocks = WAVE // _size
        declare(f"V_MFMA_{_out}_{_size}X{_size}X{_per_lane}{_word}",
                Matrix(_size, _size, _per_lane, _blocks, _kind, _per_lane))
        if _size > 4:
            _depth = _per_lane * _blocks
            declare(f"V_MFMA_{_out}_{_size}X{_size}X{_depth}{_word}", Matrix(_size, _size, _depth, 1, _kind, _per_lane))
# CDNA 3 (chapter 7) and CDNA 4 (chapter 7) double the depth of one block, and what a lane holds.
for _word, _kind, _depth, _per_lane in (
    ("I8", "i8", 512, 8), ("_F16", "f16", 512, 8), ("_BF16", "bf16", 512, 8), ("_I8", "i8", 1024, 16),
):
    for _size in 32, 16:
        declare(f"V_MFMA_{'I32' if _kind == 'i8' else 'F32'}_{_size}X{_size}X{_depth // _size}{_word}",
                Matrix(_size, _size, _depth // _size, 1, _kind, _per_lane))
# CDNA 3 (7.1): floats of 8 bits; xf32 is f32 without the last 13 bits of the mantissa.
for _size in 32, 16:
    for _first, _second in product(("fp8", "bf8"), repeat=2):
        declare(f"V_MFMA_F32_{_size}X{_size}X{512 // _size}_{_first.upper()}_{_second.upper()}",
                Matrix(_size, _size, 512 // _size, 1, _first, 8, "" if _first == _second else _second))
    declare(f"V_MFMA_F32_{_size}X{_size}X{128 // _size}XF32", Matrix(_size, _size, 128 // _size, 1, "xf32", 2))
# CDNA 3's and, twice as deep, CDNA 4's (chapter 7 of both); i8 lies as other elements of 8 bits do.
for _size, _each in product((32, 16), (8, 16)):
    _deep = 64 * _each // _size
    for _kind in "f16", "bf16":
        declare(f"V_SMFMAC_F32_{_size}X{_size}X{_deep}_{_kind.upper()}",
                SparseMatrix(Matrix(_size, _size, _deep, 1, _kind, _each)))
    for _first, _second in product(("fp8", "bf8"), repeat=2):
        declare(f"V_SMFMAC_F32_{_size}X{_size}X{2 * _deep}_{_first.upper()}_{_second.upper()}", SparseMatrix(
            Matrix(_size, _size, 2 * _deep, 1, _first, 2 * _each, "" if _first == _second else _second)))
    declare(f"V_SMFMAC_I32_{_size}X{_size}X{2 * _deep}_I8",
            SparseMatrix(Matrix(_size, _size, 2 * _deep, 1, "i8", 2 * _each)))
declare("V_MFMA_F32_16X16X128_F8F6F4", MixedMatrix(16))
declare("V_MFMA_F32_32X32X64_F8F6F4", MixedMatrix(32))
declare("V_MFMA_SCALE_F32_16X16X128_F8F6F4", MixedMatrix(16, scaled=True))
declare("V_MFMA_SCALE_F32_32X32X64_F8F6F4", MixedMatrix(32, scaled=True))
declare("V_MFMA_F64_16X16X4F64", Matrix(16, 16, 4, 1, "f64", 1))
declare("V_MFMA_F64_4X4X4F64", Matrix(4, 4, 4, 4, "f64", 1))
