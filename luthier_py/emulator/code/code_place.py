"""Where in the code something was found, as the program's author knows it: in the original, not in a tool's copy.

In: a device address, and the code of a launch. Out: a CodePlace. Invariant: what a tool inserted is never taken for the
application's; it is named by the application's instruction in front of which it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.reading.text import Text
from luthier_py.emulator.watching.findings import CodePlace


def code_place(address: int, codes: Sequence[HostedCode]) -> CodePlace:
    """Of an instruction; the address alone if it is in none of these."""
    code = next((code for code in codes if code.holds(address)), None)
    if code is None:
        return CodePlace(address, None)
    pc = address - code.base
    origins = code.source.origins
    if origins is None or pc not in origins.code:
        return CodePlace(pc, code.text(pc), _lines(code.source, pc))
    original, at = code.source.original, origins.at(pc)
    if at is not None:
        return CodePlace(at, _text(code, original, at) or code.text(pc), _lines(original, at))
    behind = origins.behind(pc)
    if behind is None:
        return CodePlace(pc, code.text(pc), inserted=True)
    return CodePlace(behind, code.text(pc), _lines(original, behind), inserted=True)


def _lines(text: Text | None, pc: int) -> tuple[str, ...]:
    return () if text is None else tuple(map(str, text.lines(pc)))


def _text(code: HostedCode, original: Text | None, pc: int) -> str | None:
    """Branches and what is relative to the PC read otherwise in a copy."""
    data = b"" if original is None else bytes(original.at(pc))
    return code.isa.text(code.isa.decode(data), pc) if data else None
