"""How many registers an image instruction's data and addresses take, which its opcode does not say.

In: decoded operands and the row's ImageInfo. Out: operands with their widths, those that are not used as ABSENT.
Sources: AMD ISA manuals (MIMG: DMASK, DIM, A16, TFE, D16, NSA), AMDGPUDisassembler::convertMIMGInst and
getAddrSizeMIMGOp of LLVM 22. Invariant: a size that LLVM has no instruction for leaves the operands as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from luthier_py.base.errors import Malformed
from luthier_py.base.records import replace
from luthier_py.isa.encoding.instruction import Operand, OperandKind
from luthier_py.isa.encoding.table import ImageInfo
from luthier_py.isa.model.target import Target


class Dimension(NamedTuple):
    """What a value of DIM makes of an image instruction (AMD ISA manuals, MIMG): how many ``coordinates`` there are,
    slices and samples among them, and how many ``gradients``, those of both directions."""

    name: str
    coordinates: int
    gradients: int


DIMENSIONS = (
    Dimension("1D", 1, 2), Dimension("2D", 2, 4), Dimension("3D", 3, 6), Dimension("CUBE", 3, 4),
    Dimension("1D_ARRAY", 2, 2), Dimension("2D_ARRAY", 3, 4), Dimension("2D_MSAA", 3, 4),
    Dimension("2D_MSAA_ARRAY", 4, 4),
)


def size_image(found: list[Operand], image: ImageInfo, target: Target) -> None:
    """Set the widths of data and addresses in ``found``; Malformed when they do not fit the register file."""
    values = {operand.name: operand.value for operand in found if operand.kind is OperandKind.IMMEDIATE}
    data = _data_dwords(image, values)
    addresses = image.address
    if "dim" in values:
        addresses = _address_dwords(image, DIMENSIONS[values["dim"]], bool(values.get("a16")))
        if not image.separate and addresses > 12:
            addresses = 16
        if image.separate and addresses > image.address and not image.partly_separate:
            return
    if [data, addresses] not in image.sizes:
        return
    places = [k for k, operand in enumerate(found) if operand.name.startswith("vaddr")]
    for k, operand in enumerate(found):
        if operand.name in ("vdata", "vdst") and data != image.data:
            found[k] = _widen_operand(operand, data, target)
    if image.separate:
        for k in places[addresses:]:
            found[k] = replace(found[k], kind=OperandKind.ABSENT, reg=None)
        if addresses > image.address:
            found[places[-1]] = _widen_operand(found[places[-1]], addresses - len(places) + 1, target)
    elif addresses != image.address:
        found[places[0]] = _widen_operand(found[places[0]], addresses, target)


def _data_dwords(image: ImageInfo, values: dict[str, int]) -> int:
    """As many as dmask has bits, half that for packed D16, one more with TFE."""
    dwords = 4 if image.gathers else max(1, (values["dmask"] & 15).bit_count())
    if values.get("d16") and image.packed_d16:
        dwords = (dwords + 1) // 2
    return dwords + values.get("tfe", 0)


def _address_dwords(image: ImageInfo, dimension: Dimension, a16: bool) -> int:
    components = dimension.coordinates * image.coordinates + image.level
    dwords = image.extra + ((components + 1) // 2 if a16 else components)
    if image.gradients and (image.packed_gradients or a16 and image.a16_packs_gradients):
        dwords += (dimension.gradients // 2 + 1) // 2 * 2  # each direction's are packed on their own
    elif image.gradients:
        dwords += dimension.gradients
    return dwords


def _widen_operand(operand: Operand, dwords: int, target: Target) -> Operand:
    if operand.reg is None:
        return operand
    first = operand.reg.index
    if first + dwords > target.vgpr_limit:
        raise Malformed(f"{operand.name}: {dwords} registers from {first} on exceed the vector register file")
    if operand.name in ("vdata", "vdst") and dwords > 1 and first & 1 and target.aligned_vgprs:
        raise Malformed(f"{operand.name}: tuples start at even registers")
    return replace(operand, reg=replace(operand.reg, dwords=dwords))
