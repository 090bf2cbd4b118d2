"""What the translation of a kernel takes grows as the kernel does: work is counted, not time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_parts import ISA

from luthier_py.base.llvm import Effort
from luthier_py.emulator.code.hosted_part import HostedPart, Improvable
from luthier_py.emulator.options import sizes
from luthier_py.emulator.options.settings import FIRST_COUNTER, CounterKind, Settings
from luthier_py.emulator.reading import first_reads, liveness
from luthier_py.emulator.reading.discover import CodeBlock, discover
from luthier_py.emulator.translation import host_functions
from luthier_py.emulator.translation.host_functions import DividedFunction
from luthier_py.emulator.translation.translated import HostPart
from luthier_py.isa.encoding.instruction import Inst

SETTINGS = Settings(64, 0xF0 | 0x300, ISA.target)
SHORT, LONG = 2_000, 8_000


def blocks_of(lines: list[str]) -> list[CodeBlock]:
    insts: dict[int, Inst] = {}
    pc = 0
    for line in lines:
        insts[pc] = ISA.parse(line)
        pc += insts[pc].size_bytes
    return discover(insts.__getitem__, 0)


def straight(count: int) -> list[CodeBlock]:
    """No two neighbours alike, and few that differ in more than registers and constants."""
    lines = [f"v_{('add_f32', 'mul_f32', 'xor_b32')[place % 3]}_e32 v{place % 50}, {place % 64}, v{place * 7 % 50}"
             for place in range(count)]
    return blocks_of([*lines, "s_endpgm"])


def diamonds() -> list[CodeBlock]:
    """Each writes a row on one way only."""
    lines = [("s_cbranch_scc1 2", f"v_mov_b32_e32 v{row}, 0", "s_branch 1", "v_mov_b32_e32 v250, 0",
              f"v_mov_b32_e32 v251, v{row}") for row in range(200)]
    return blocks_of([*(line for each in lines for line in each), "s_endpgm"])


def backwards() -> list[CodeBlock]:
    """The first one is the last in memory, and each reads a row that none of those before it has."""
    lines = [(f"v_mov_b32_e32 v250, v{row}", f"s_branch {-4 & 0xFFFF}") for row in range(200)]
    return blocks_of(["s_branch 400", "s_endpgm", *(line for two in lines for line in two), f"s_branch {-3 & 0xFFFF}"])


def test_what_llvm_gets_at_once_does_not_grow() -> None:
    def sizes_of(count: int) -> tuple[int, int, int]:
        function = DividedFunction(straight(count), 0, SETTINGS)
        texts = [function.translate_part(name, Effort.FAST).ir for name in function.parts]
        routines = max(text.count("define internal") for text in texts)
        return max(map(len, texts)), sum(map(len, texts)), routines

    (largest, whole, routines), (largest_of_long, whole_of_long, routines_of_long) = map(sizes_of, (SHORT, LONG))
    assert largest_of_long <= 1.05 * largest
    assert whole_of_long <= 1.05 * whole * LONG / SHORT
    assert routines == routines_of_long <= 9, "three operations, and which registers are the same"
    assert whole < 200 * SHORT, "letters for each instruction"


@pytest.mark.parametrize(("module", "name", "find"), [
    (first_reads, "followers", lambda blocks: first_reads.rows_read_first(blocks, 0)),
    (liveness, "_at_end", liveness.live_rows),
])  # fmt: skip
@pytest.mark.parametrize("make", (diamonds, backwards))
def test_blocks_are_looked_at_a_few_times(make: Callable[[], list[CodeBlock]], module: Any, name: str,
                                          find: Callable[[list[CodeBlock]], object],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, looks, known = make(), [0], getattr(module, name)

    def counted(*arguments: Any) -> object:
        looks[0] += 1
        return known(*arguments)

    monkeypatch.setattr(module, name, counted)
    find(blocks)
    assert 200 < len(blocks) <= looks[0] <= 3 * len(blocks)


def test_one_part_is_written_when_one_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    written, translate = list[str](), host_functions.Translator.translate

    def noted(translator: host_functions.Translator) -> str:
        written.append(translator.name)
        return translate(translator)

    monkeypatch.setattr(host_functions.Translator, "translate", noted)
    function = DividedFunction(straight(SHORT), 0, SETTINGS)
    first, *_ = function.parts
    fast, well = (function.translate_part(first, effort) for effort in (Effort.FAST, Effort.GENERATE))
    assert written == [first, first] and len(function.parts) > SHORT // sizes.PART
    assert fast.ir != well.ir and fast.numbers == well.numbers and fast.digest != well.digest


def test_parts_are_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed, improvable = [0], Improvable()

    class Counters(tuple[tuple[CounterKind, int, int], ...]):
        def __iter__(self) -> Any:
            weighed[0] += 1
            return super().__iter__()

    for number in range(50):
        part = HostPart(f"gpu_{number}", (0,), (0,), Counters([(CounterKind.WAVES, 0, 1)]), (), "digest")
        improvable.add(HostedPart(part, 0, Effort.FAST, {FIRST_COUNTER: number}, (0,), None))
    improvable.note(memoryview(bytes(8 * 50)).cast("Q"))
    assert weighed == [50] and len(improvable.parts) == 50
