"""Structures where hooks meet memory and other lanes: through pointers in them, in LDS, in loops and in recursion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hook_files import load_text
from observing import LANES, launch

from luthier_py.base.errors import HookError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.intrinsics import atomic_add, read_first_lane, read_lane
from luthier_py.isa import AccessKind, AddressForm, vgpr
from luthier_py.program.ir import Instr
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    Lane,
    LaunchResult,
    LaunchVariable,
    LookupTable,
    Mutator,
    Tool,
    Variable,
    address,
    array,
    destination,
    device,
    f16,
    hook,
    i8,
    lds,
    ptr,
    u8,
    u32,
    u64,
    wave_in_launch,
)
from luthier_py.samples import sample


class Pair:
    first: u32
    second: u32


class Short:
    a: u8
    b: i8
    c: f16
    d: Pair


class Leads:
    count: u32
    to: ptr[Pair]


class Outer:
    inner: Leads
    last: u32


LANE = np.arange(LANES)


def at_entry(one: Any, given: dict[str, Variable], *more: object) -> dict[str, Any]:
    """What variables hold behind one launch of a hook that takes them, v0 and more."""
    class Once(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], one, *given.values(), vgpr(0), *more)

    found = launch(Once(), LANES)
    return {name: found[variable] for name, variable in given.items() if not isinstance(variable, LookupTable)}


@hook
def of_one_lane(rows: ptr[Short], x: Lane[u32], lane: u32) -> None:
    own = rows[x]
    first, other = read_first_lane(own), read_lane(own, lane)
    rows[x] = Short(first.a, other.b, first.c, Pair(other.d.first, x))


def test_of_one_lane() -> None:
    begin = [(n * 3, -n, n / 2 + 1, (n + 100, 0)) for n in range(LANES)]
    rows = at_entry(of_one_lane, {"rows": Variable(Short, name="rows", initial=begin)}, 7)["rows"]
    assert (rows["a"] == 0).all() and (rows["b"] == -7).all() and (rows["c"] == 1).all()
    assert (rows["d"]["first"] == 107).all() and (rows["d"]["second"] == LANE).all()


@hook
def through_pointers(outer: ptr[Outer], pairs: ptr[Pair], x: Lane[u32]) -> None:
    outer[x].inner = Leads(x, pairs + x)
    outer[x].inner.to[0].second = outer[x].inner.count * 2
    copy = outer[x]
    copy.inner.to[0].first += 5
    outer[x].last = copy.inner.to[0].second + copy.inner.to[0].first


def test_pointers_in_structures() -> None:
    """The proof takes what is loaded there for an address, since a member is a pointer."""
    found = at_entry(through_pointers, {
        "outer": Variable(Outer, LANES, name="outer"),
        "pairs": Variable(Pair, name="pairs", initial=[(n, 0) for n in range(LANES)])})
    assert (found["pairs"]["first"] == LANE + 5).all() and (found["pairs"]["second"] == 2 * LANE).all()
    assert (found["outer"]["last"] == 3 * LANE + 5).all() and (found["outer"]["inner"]["count"] == LANE).all()


@device
def smaller(a: Lane[Pair], b: Lane[Pair]) -> Lane[Pair]:
    if a.first < b.first:
        return a
    return Pair(b.first, b.second + 1)


@hook
def in_loops(pairs: ptr[Pair], table: ptr[Pair], x: Lane[u32]) -> None:
    best = pairs[x]
    for n in range(8):
        entry = table[n]
        if entry.second != x % 4:
            best = smaller(best, entry)
        elif best.second > 50:
            best = Pair(best.first + 1, 0)
    pairs[x] = best if x % 3 else Pair(x, best.first)


def test_in_loops_and_branches() -> None:
    rng = np.random.default_rng(3)
    begin = [(int(a), int(b)) for a, b in rng.integers(0, 100, (LANES, 2))]
    table = [(int(first), number) for number, first in enumerate(rng.integers(0, 100, 8))]
    pairs = at_entry(in_loops, {"pairs": Variable(Pair, name="pairs", initial=begin),
                                "table": LookupTable(Pair, table)})["pairs"]
    want = []
    for x, best in enumerate(begin):
        for entry in table:
            if entry[1] != x % 4:
                best = best if best[0] < entry[0] else (entry[0], entry[1] + 1)
            elif best[1] > 50:
                best = best[0] + 1, 0
        want.append(best if x % 3 else (x, best[0]))
    assert pairs.tolist() == want and len(set(want)) > 8


@device(depth=6)
def sum_of(pairs: ptr[Pair], at: Lane[u32]) -> Lane[u32]:
    own = pairs[at]
    if own.first == 0:
        return own.second
    return own.second + sum_of(pairs, own.first) * 2 + own.first


@hook
def of_chains(pairs: ptr[Pair], sums: ptr[u32], x: Lane[u32]) -> None:
    sums[x] = sum_of(pairs, x)


def test_in_functions_that_call_themselves() -> None:
    """A structure is kept across the call."""
    begin = [(n // 3, n + 1) for n in range(LANES)]
    found = at_entry(of_chains, {"pairs": Variable(Pair, name="pairs", initial=begin),
                                 "sums": Variable(u32, LANES, name="sums")})

    def reference(at: int) -> int:
        following, own = begin[at]
        return own + reference(following) * 2 + following if following else own

    assert found["sums"] == tuple(map(reference, range(LANES)))


@hook
def on_a_stack(rows: ptr[Short], x: Lane[u32]) -> None:
    own = array(Short, 60)
    for n in range(60):
        own[n].a = u8(n)
        own[n].d = Pair(u32(n) * x, x)
    own[x % 60].d.second += 1
    rows[x] = own[(x * 7) % 60]


def test_arrays_on_a_stack() -> None:
    rows = at_entry(on_a_stack, {"rows": Variable(Short, LANES, name="rows")})["rows"]
    asked = LANE * 7 % 60
    assert (rows["a"] == asked).all() and (rows["d"]["first"] == asked * LANE).all()
    assert (rows["d"]["second"] == LANE + (asked == LANE % 60)).all() and (rows["b"] == 0).all()


def test_the_example_of_the_manual(tmp_path: Path) -> None:
    manual = (Path(__file__).resolve().parents[4] / "docs" / "device-python.md").read_text()
    (example,) = [part.partition("```")[0] for part in manual.split("```python\n")[1:] if "class Seen" in part]
    tool = load_text(tmp_path, example).Loaded()
    one = sample("vector_add")
    code, arguments = one.path.read_bytes(), launch_of(one)
    ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, arguments)
    a, b, _ = (argument.data for argument in arguments.arguments)
    loaded = np.stack([a, b]).astype("f8")
    assert ran.report == {"lowest": loaded.min(), "mean": loaded.sum(0).sum() / loaded.size}


class Others:
    class Pair:
        first: u32
        second: u8

    class Leads:
        count: u32
        to: ptr[Others.Pair]


@hook
def of_pairs(pairs: ptr[Pair], x: Lane[u32]) -> None:
    pairs[x].first = 0


@hook
def of_leads(leads: ptr[Leads], x: Lane[u32]) -> None:
    leads[x].count = 0


PAIRS = r"Pair \(first: u32, second: u8\) is not Pair \(first: u32, second: u32\)"


@pytest.mark.parametrize(("one", "given", "message"), [
    (of_pairs, Variable(Others.Pair, 64, name="v"), rf"cannot take Variable\(v: Pair\): {PAIRS}"),
    (of_pairs, Variable(Others.Pair, 64, name="v")[3], f"cannot take Element.*: {PAIRS}"),
    (of_pairs, LookupTable(Others.Pair, [(1, 2)], "t"), rf"cannot take LookupTable\(t: 1 Pair\): {PAIRS}"),
    (of_pairs, LaunchVariable(Others.Pair, "wave", name="w").own, rf"cannot take w.own: {PAIRS}"),
    (of_leads, Variable(Others.Leads, name="v"), rf"cannot take Variable\(v: Leads\): {PAIRS}"),
    (of_pairs, Variable(Short, name="v"), r"cannot take Variable\(v: Short\); declare it pairs: ptr\[Short\]"),
])  # fmt: skip
def test_structures_with_one_name_are_told_apart(one: Any, given: Any, message: str) -> None:
    class Once(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], one, given, vgpr(0))

    with pytest.raises(HookError, match=message):
        launch(Once(), LANES)


# -- the application's own memory, and memory as large as a launch -----------------------------------


@hook
def pairs_in_lds(sums: ptr[u64], place: Lane[lds[Pair]], wanted: u32, number: u32) -> None:
    own = place[wanted // 2]
    atomic_add(sums + number, u64(own.second if wanted % 2 else own.first))


@hook
def value(sums: ptr[u64], x: Lane[u32], number: u32) -> None:
    atomic_add(sums + number, u64(x))


@hook(lanes="one")
def of_wave(own: ptr[Short], number: u32) -> None:
    own[1] = Short(u8(number), i8(-1), f16(0.5), Pair(number, 8))


class InLds(Tool):
    """What is in LDS where instructions read it, as pairs, and what they get: sums over all lanes for each dword."""

    before = Variable(u64, 64)
    after = Variable(u64, 64)
    waves = LaunchVariable(Short, "wave", 2)

    def instrument(self, m: Mutator) -> None:
        number = 0
        for instr in [each for function in m.functions() for each in m.instrs(function) if reads_lds(each)]:
            assert instr.memory is not None and instr.memory.bytes is not None
            for dword in range(instr.memory.bytes // 4):
                m.before(instr, pairs_in_lds, self.before, address(instr), dword, number)
                m.after(instr, value, self.after, destination(instr, dword=dword), number)
                number += 1
        m.at_entry(m.kernels[0], of_wave, self.waves.own, wave_in_launch())

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        return {name: launch[getattr(self, name)] for name in ("before", "after", "waves")}


def reads_lds(instr: Instr) -> bool:
    access = instr.memory
    return access is not None and access.form is AddressForm.LDS and access.kind is AccessKind.LOAD and len(
        access.offsets) == 1 and (access.bytes or 0) >= 4


def test_in_lds_and_for_each_wave() -> None:
    one, tool = sample("lds_widths"), InLds()
    code, arguments = one.path.read_bytes(), launch_of(one)
    gpu = EmulatorDevice(load(code).target)
    before = run_original(gpu, code, arguments).outputs
    after = run_instrumented(gpu, instrument(code, tool), tool, arguments)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in before.items()}
    found = after.report
    assert isinstance(found, dict) and found["before"] == found["after"] and sum(map(bool, found["after"])) > 4
    waves = found["waves"]
    assert waves.shape[1:] == (2,) and not waves[:, 0].tobytes().strip(b"\0")
    assert [row["d"].tolist() for row in waves[:, 1]] == [(n, 8) for n in range(len(waves))]
    assert (waves[:, 1]["c"] == 0.5).all() and (waves[:, 1]["b"] == -1).all()
