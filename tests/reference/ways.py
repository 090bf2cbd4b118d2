"""In how many ways a row is tried: overlaps of its registers, and its modifiers one by one.

In: a row. Out: what Cases.make is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from luthier_py.isa import Access, OpFlag, OpInfo
from luthier_py.isa.semantics import Lanes, Scalar, find_meaning
from luthier_py.isa.semantics.meaning import Variants
from luthier_py.isa.semantics.memory import ScalarAtomic

WHOLE = "whole"  # no field: all that memory instructions want is in range
BELOW = 3        # of that: their offset is negative
TELLING = "telling"  # no field: operands are telling ones
UPPER = "the half of "  # of an operand, where its field has a bit for that
TOLD = 6         # cases of a vector operation with telling operands, two in each mode
SCALARS_TOLD = 18  # the same of a scalar one, which has one number in a case
SWAPPED = 0b110_111_100_101_010_011_000_001  # of DPP8: each two lanes


def overlaps(op: OpInfo) -> Iterator[tuple[str, int] | None]:
    """None for none, then every (source, distance in dwords) at which source and result share a register."""
    yield None
    results = [info for info in op.operands if Access.WRITE in info.access and info.dwords]
    sources = [info for info in op.operands if info.access is Access.READ and info.dwords]
    for result in results:
        for source in sources:
            if set(result.files) & set(source.files):
                distances = range(1 - source.dwords, result.dwords)
                if result.dwords > 4:  # matrices: both ends, and what IREE's compiler emits
                    ends = {1 - source.dwords, result.dwords - source.dwords}
                    distances = sorted((ends | {-4, -2, 0, 2, 4}) & {*distances})
                for distance in distances:
                    yield f"{result.name} {source.name}", distance


def focuses(op: OpInfo) -> Iterator[dict[str, int]]:
    """Each modifier by itself, with what it needs to show."""
    row = find_meaning(op)
    if op.flags & (OpFlag.VMEM | OpFlag.LDS | OpFlag.SMEM):
        yield from ({WHOLE: number} for number in range(
            SCALARS_TOLD if isinstance(row, ScalarAtomic) else BELOW + 1))
    if isinstance(row, Lanes | Scalar | Variants):
        scalar = isinstance(row.typical if isinstance(row, Variants) else row, Scalar)
        yield from ({TELLING: number} for number in range(SCALARS_TOLD if scalar else TOLD))
    yield from ({UPPER + info.name: 1} for info in op.operands if info.kind.endswith("16lo") or info.kind == "v16")
    names = {info.name: sum((1 << width) - 1 << at for _, width, at in info.segments) for info in op.operands}
    plain = isinstance(row, Lanes | Variants)
    packed = 8 if op.format == "VOP3P" else 0
    for name, bits in names.items():
        if name.endswith("_modifiers"):
            for bit in (1, 2, 4, 8, 16):
                if bits & bit:
                    select = {name[:4] + "_sel": 3} if bit == 16 and name[:4] + "_sel" in names else {}
                    for number in (0, 1) if bit < 4 and plain else (0,):
                        yield {name: (packed & bits) ^ bit, **select, **({TELLING: number} if plain else {})}
    shifts = next((name for name in names if name.startswith("dpp")), "")
    shifted = {shifts: 0x111} if shifts == "dpp_ctrl" or shifts == "dpp" else {}
    for name, given in (
        ("clamp", {"clamp": 1}), ("omod", {"omod": 1}), ("omod", {"omod": 3}), ("dst_sel", {"dst_sel": 5}),
        ("dst_sel", {"dst_sel": 2}), ("dst_unused", {"dst_sel": 5, "dst_unused": 1}),
        ("dst_unused", {"dst_sel": 5, "dst_unused": 2}), ("src0_sel", {"src0_sel": 5}), ("src1_sel", {"src1_sel": 5}),
        ("row_mask", {"row_mask": 5}), ("bank_mask", {"bank_mask": 6}), ("bound_ctrl", {"bound_ctrl": 1, **shifted}),
        ("bound_ctrl", {"bound_ctrl": 0, **shifted}), ("fi", {"fi": 1, **shifted}),
        ("dpp8", {"dpp8": SWAPPED, "fi": 0xE9}), ("dpp8", {"dpp8": SWAPPED, "fi": 0xEA}),
    ):  # fmt: skip
        if name in names and not (name == "fi" and "dpp8" in names):
            yield given


def mode_of(given: dict[str, int], number: int) -> int:
    """Which of the modes shows it; ``number``: whatever else chooses one."""
    return 0 if "omod" in given else given.get(TELLING, number) % 3


def variants(op: OpInfo, every: bool) -> list[tuple[tuple[str, int] | None, bool]]:
    """(overlap, whether modifiers and operands vary): all of them, or two."""
    ways = list(overlaps(op))
    if not every:
        return [(None, True), (ways[len(op.record) % len(ways)], True)]
    one = isinstance(find_meaning(op), Scalar)  # a case has one number, where others have one for each lane
    return [(None, False), *((None, True) for _ in range(12 if one else 6 if OpFlag.VALU in op.flags else 3)),
            *((way, bool(number % 2)) for number, way in enumerate(ways[1:]))]
