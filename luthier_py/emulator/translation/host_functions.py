"""A function of GPU code as the host functions that stand for it: each written when it is requested, in that style.

In: the blocks of a function. Out: LLVM IR of its parts. Invariant: what is known of the whole function is worked out
once, so writing one part takes time for that part alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier_py.base.llvm import Effort
from luthier_py.base.records import dataclass
from luthier_py.base.storage import cache_key
from luthier_py.emulator.instructions.modes import modes, sets_from_register
from luthier_py.emulator.options.settings import CodeNumbers, Settings, Style
from luthier_py.emulator.options.translator import translator
from luthier_py.emulator.reading.discover import CodeBlock, without_vectors
from luthier_py.emulator.reading.liveness import live_rows
from luthier_py.emulator.reading.parts import cut, effort, parts
from luthier_py.emulator.translation.translate import Translator, WholeFunction
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Switch

if TYPE_CHECKING:
    from luthier_py.binary.loader.origins import Origins


@dataclass(frozen=True, slots=True)
class HostFunction:
    """LLVM IR of the blocks that one host function runs."""

    name: str
    blocks: list[CodeBlock]
    ir: str
    numbers: CodeNumbers
    digest: str
    """Of all that its code depends on, in any style."""


class DividedFunction:
    """A function in parts, by name. ``effort``: how to compile it at first."""

    def __init__(self, blocks: list[CodeBlock], entry: int, settings: Settings, origins: Origins | None = None) -> None:
        blocks = cut(blocks, settings.yields)
        self.effort = effort(blocks)
        # Better code comes of another text, not written yet: the translator's sources identify it.
        self._of_better_code = translator() if self.effort is Effort.FAST else ""
        self._settings, self._origins = settings, origins
        self._items: dict[tuple[Inst, int], Any] = {}
        insts = [inst for block in blocks for _, inst in block.insts]
        self._whole = WholeFunction(
            live_rows(blocks), modes(blocks, entry, settings.mode, settings.target),
            any(map(sets_from_register, insts)), any(find_meaning(inst.op) is Switch.SKIP for inst in insts),
            without_vectors(blocks, settings.target),
        )  # fmt: skip
        self.parts = {f"gpu_{part[0].start:x}": part
                      for part in parts([block for block in blocks if block.start in self._whole.mode_at])}

    def translate_part(self, name: str, effort: Effort) -> HostFunction:
        """A part, to be compiled with ``effort``; Unsupported if any instruction of it is."""
        part = self.parts[name]
        writer = Translator(name, part, self._whole, self._settings, self._style(effort), self._origins)
        writer.items = self._items
        ir = writer.translate()
        live = " ".join(f"{self._whole.live[pc]:x}" for block in part for pc, _ in block.insts)
        return HostFunction(name, part, ir, writer.numbers, cache_key(ir, live, self._of_better_code))

    def _style(self, effort: Effort) -> Style:
        if effort is Effort.FAST:
            return Style.CALLS
        settings = self._settings
        plain = self.effort is Effort.FAST or settings.cycles or settings.yields or settings.checks
        return Style.LOOPS if plain else Style.EVEN_LOOPS


def translate(blocks: list[CodeBlock], entry: int, settings: Settings) -> list[HostFunction]:
    """All of a function, as it is compiled at first; Unsupported if any instruction of it is."""
    function = DividedFunction(blocks, entry, settings)
    return [function.translate_part(name, function.effort) for name in function.parts]
