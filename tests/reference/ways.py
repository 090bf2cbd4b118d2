"""In how many ways a row is tried: overlaps of its registers, and its modifiers one by one.

In: a row. Out: what Cases.make is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from luthier_py.isa import Access, OpFlag, OpInfo
from luthier_py.isa.semantics import Scalar, meaning

WHOLE = "whole"  # no field: all that memory instructions want is in range
BELOW = 3        # of that: their offset is negative


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
    if op.flags & (OpFlag.VMEM | OpFlag.LDS | OpFlag.SMEM):
        yield from ({WHOLE: number} for number in range(BELOW + 1))
    names = {info.name: sum((1 << width) - 1 << at for _, width, at in info.segments) for info in op.operands}
    packed = 8 if op.format == "VOP3P" else 0
    for name, bits in names.items():
        if name.endswith("_modifiers"):
            for bit in (1, 2, 4, 8, 16):
                if bits & bit:
                    select = {name[:4] + "_sel": 5} if bit == 16 and name[:4] + "_sel" in names else {}
                    yield {name: (packed & bits) ^ bit, **select}
    shifts = next((name for name in names if name.startswith("dpp")), "")
    plain = {shifts: 0x111} if shifts == "dpp_ctrl" or shifts == "dpp" else {}
    for name, given in (
        ("clamp", {"clamp": 1}), ("omod", {"omod": 1}), ("omod", {"omod": 3}), ("dst_sel", {"dst_sel": 5}),
        ("dst_sel", {"dst_sel": 2}), ("dst_unused", {"dst_sel": 5, "dst_unused": 1}),
        ("dst_unused", {"dst_sel": 5, "dst_unused": 2}), ("src0_sel", {"src0_sel": 5}), ("src1_sel", {"src1_sel": 5}),
        ("row_mask", {"row_mask": 5}), ("bank_mask", {"bank_mask": 6}), ("bound_ctrl", {"bound_ctrl": 1, **plain}),
        ("bound_ctrl", {"bound_ctrl": 0, **plain}), ("fi", {"fi": 1, **plain}),
    ):  # fmt: skip
        if name in names and not (name == "fi" and "dpp8" in names):
            yield given


def variants(op: OpInfo, every: bool) -> list[tuple[tuple[str, int] | None, bool]]:
    """(overlap, whether modifiers and operands vary): all of them, or two."""
    ways = list(overlaps(op))
    if not every:
        return [(None, True), (ways[len(op.record) % len(ways)], True)]
    one = isinstance(meaning(op), Scalar)  # a case has one number, where others have one for each lane
    return [(None, False), *((None, True) for _ in range(24 if one else 6 if OpFlag.VALU in op.flags else 3)),
            *((way, bool(number % 2)) for number, way in enumerate(ways[1:]))]


