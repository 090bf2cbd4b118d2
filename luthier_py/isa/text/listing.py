"""A listing with labels to bytes.

In: lines of assembly. Out: their bytes. Invariant: an error names its line and column; sizes do not depend on labels,
because every branch has one size.
"""

from __future__ import annotations

import re

from luthier_py.base.errors import Invalid
from luthier_py.isa.encoding.instruction import Inst, OperandKind
from luthier_py.isa.text.assembly import Parser
from luthier_py.isa.text.parse import COMMENT

LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*)\s*:(?!:)")


def assemble_listing(parser: Parser, listing: str) -> bytes:
    """Invalid with line and column for what is wrong, or for a label that is missing, doubled or too far."""
    labels: dict[str, int] = {}
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(listing.splitlines(), 1):
        text = COMMENT.sub("", line)
        while (found := LABEL.match(text)) is not None:
            if found.group(1) in labels:
                raise Invalid(f"line {number}: label {found.group(1)} is there twice")
            labels[found.group(1)] = len(lines)
            text = " " * found.end() + text[found.end():]
        if text.strip():
            lines.append((number, text))
    nowhere = dict.fromkeys(labels, 0)
    insts = [_parse(parser, number, text, nowhere) for number, text in lines]
    starts = [0]
    for inst in insts:
        starts.append(starts[-1] + len(inst.raw))
    code = []
    for (number, text), inst, end in zip(lines, insts, starts[1:], strict=True):
        if any(operand.kind is OperandKind.TARGET for operand in inst.operands):
            distances = {name: (starts[place] - end) // 4 for name, place in labels.items()}
            inst = _parse(parser, number, text, distances)
        code.append(inst.raw)
    return b"".join(code)


def _parse(parser: Parser, number: int, text: str, labels: dict[str, int]) -> Inst:
    try:
        return parser.parse(text, labels)
    except Invalid as error:
        raise Invalid(f"line {number}, {error.message}") from None
