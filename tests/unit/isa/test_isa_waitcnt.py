"""Wait counts of every generation: what is asked for is what the instructions wait for."""

from __future__ import annotations

from contextlib import suppress

import pytest
from each_target import EACH_TARGET

from luthier_py.base.errors import LuthierError
from luthier_py.isa import Counter, Target, instruction_set, target
from luthier_py.isa.encoding.waitcnt import counters_of, encode_immediate, highest_count, waits_for


@pytest.mark.parametrize("row", EACH_TARGET)
def test_instructions_wait_for_what_is_asked(row) -> None:
    isa = instruction_set(row)
    for count in (0, 2, 6):
        asked = {counter: count for counter in Counter if counter and counter in counters_of(row)}
        found: dict[Counter, int] = {}
        for inst in isa.waits(asked):
            found |= waits_for(row, inst)
        assert found == asked
    assert isa.waits({}) == []


@pytest.mark.parametrize("row", EACH_TARGET)
def test_however_long_something_has_been_outstanding_it_is_waited_for(row) -> None:
    """The highest number of a field waits for nothing: LLVM takes one less (WaitcntBrackets::determineWait)."""
    isa = instruction_set(row)
    for counter in (each for each in Counter if each and each in counters_of(row)):
        highest = highest_count(row, counter)
        for count in (highest - 1, highest, highest + 1, 200):
            (inst,) = isa.waits({counter: count})
            assert waits_for(row, inst) == {counter: highest - 1}, isa.text(inst)
        nothing = isa.decode((int.from_bytes(inst.raw, "little") | _field(row, counter)).to_bytes(4, "little"))
        assert waits_for(row, nothing) == {}, isa.text(nothing)


@pytest.mark.parametrize("row", EACH_TARGET)
def test_of_every_program_control_instruction_it_is_known_what_it_waits_for(row) -> None:
    """Also of those without an immediate."""
    isa, counted = instruction_set(row), set[str]()
    for op in range(128):
        with suppress(LuthierError):
            inst = isa.decode((0xBF800000 | op << 16).to_bytes(4, "little"))
            counted |= {inst.op.mnemonic} if waits_for(row, inst) else set()
    assert counted == {each for each in counted if each.startswith("s_wait")} != set()


def _field(row: Target, counter: Counter) -> int:
    """The bits of a wait's immediate that its count is in."""
    return (highest_count(row, counter) if row.generation >= 12 or counter is Counter.VS else
            encode_immediate(row, {}) & ~encode_immediate(row, {counter: 0}))


@pytest.mark.parametrize(("name", "counts", "text"), [
    ("gfx90a", {Counter.VM: 3}, ["s_waitcnt vmcnt(3)"]),
    ("gfx1030", {Counter.VM: 0, Counter.VS: 1}, ["s_waitcnt vmcnt(0)", "s_waitcnt_vscnt null, 0x1"]),
    ("gfx1100", {Counter.VS: 0}, ["s_waitcnt_vscnt null, 0x0"]),
    ("gfx1201", {Counter.LOAD: 0, Counter.KM: 0, Counter.BVH: 9},
     ["s_wait_loadcnt 0x0", "s_wait_kmcnt 0x0", "s_wait_bvhcnt 0x6"]),
    ("gfx1250", {Counter.TENSOR: 1}, ["s_wait_tensorcnt 0x1"]),
])
def test_text(name: str, counts: dict[Counter, int], text: list[str]) -> None:
    isa = instruction_set(target(name))
    assert [isa.text(inst) for inst in isa.waits(counts)] == text


def test_counters_of_gfx12() -> None:
    isa = instruction_set(target("gfx1250"))
    raises = {text.split()[0]: isa.parse(text).op.counters for text in (
        "s_load_b32 s4, s[6:7], 0x0", "ds_load_b32 v1, v2", "global_load_b32 v1, v[2:3], off",
        "global_store_b32 v[2:3], v1, off", "flat_load_b32 v1, v[2:3]", "global_wb",
        "global_load_async_to_lds_b32 v1, v[2:3], off")}
    assert raises == {
        "s_load_b32": Counter.KM | Counter.X, "ds_load_b32": Counter.DS, "global_load_b32": Counter.LOAD | Counter.X,
        "global_store_b32": Counter.STORE | Counter.X, "flat_load_b32": Counter.LOAD | Counter.DS | Counter.X,
        "global_wb": Counter.STORE | Counter.X, "global_load_async_to_lds_b32": Counter.ASYNC | Counter.X,
    }
    sample = "image_sample v[0:3], v4, s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_1D"
    assert instruction_set(target("gfx1201")).parse(sample).op.counters is Counter.SAMPLE
