"""Tools against the emulator's checks: on kernels with one defect each both find it, at the same places; on the kernels
as they are neither tells anything.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from compiled_samples import OPTIONS
from defects import Defect, first_store_left_out, weaker_waits, without

from luthier_py.base.errors import DeviceError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import ALL, Checks, FindingKind
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import BufferSpec, parse_argument
from luthier_py.isa import AccessKind, OpFlag
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES, sample
from luthier_py.tools.racecheck.orders import EACH
from luthier_py.tools.racecheck.races import between_waves
from luthier_py.tools.racecheck.trace import Accesses

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sanitizers.md"
SHIPPED = [one for one in SAMPLES if one.path.suffix == ".co" and one.name != "lds_widths"]
"""lds_widths waits after each instruction, mostly for nothing."""
TREE, WORK_ITEMS = "reduce", 256  # whose barriers matter while more than one wave adds
FAMILIES = {"barrier left out": "racecheck", "wait left out or weaker": "waitcheck",
            "first store to LDS left out": "initcheck", "buffer one element short": "memcheck"}
KINDS = {"racecheck": FindingKind.RACE, "waitcheck": FindingKind.WAIT, "initcheck": FindingKind.MEMORY,
         "memcheck": FindingKind.BOUNDS}
QUICK = 2  # of each family


def checked(data, launch):
    """What the emulator's checks find: kinds, each with the addresses of its instructions."""
    device = EmulatorDevice(load(data).target, options=LaunchOptions(time_limit=60, checks=ALL))
    try:
        run_original(device, data, launch)
    except DeviceError:
        assert device.findings
    return [(each.kind, frozenset(place.pc for place in (each.where, each.other) if place is not None))
            for each in device.findings]


def ran(name, data, launch, **options):
    """Scalar loads are made all the same: with its check the emulator goes on."""
    checks = Checks.BOUNDS if name == "memcheck" and not options else Checks.NONE
    tool, device = load_tool(name, options), EmulatorDevice(load(data).target, options=LaunchOptions(60, checks=checks))
    return run_instrumented(device, instrument(data, tool), tool, launch)


def found(name, data, launch):
    """Addresses of what a tool finds, those of each finding together."""
    report = ran(name, data, launch).report
    if name == "racecheck":
        return [frozenset((row["pc"], row["other_pc"])) for row in report["races"]]
    if name == "synccheck":
        return [frozenset()] * report["workgroups"]
    return [frozenset({row["pc"]}) for row in report[{"memcheck": "bad", "initcheck": "unwritten",
                                                      "waitcheck": "missing"}[name]]]


def families(one):
    """Each defect with its family; of the tree's barriers those that matter."""
    data = one.path.read_bytes()
    barriers = [*without(data, one.kernel, OpFlag.BARRIER, "barrier")]
    for number, defect in enumerate(barriers):
        if one.name != TREE or number == 0 or WORK_ITEMS >> number > 64:
            yield "barrier left out", one, defect, launch_of(one)
    for defect in weaker_waits(data, one.kernel):
        yield "wait left out or weaker", one, defect, launch_of(one)
    for defect in first_store_left_out(data, one.kernel):
        yield "first store to LDS left out", one, defect, launch_of(one)
    launch = launch_of(one)
    for number, argument in enumerate(launch.arguments):
        if isinstance(argument, BufferSpec):
            shorter = BufferSpec(argument.text, argument.direction, np.ascontiguousarray(argument.data.ravel()[:-1]))
            arguments = (*launch.arguments[:number], shorter, *launch.arguments[number + 1 :])
            yield "buffer one element short", one, Defect("short", 0, data), type(launch)(
                launch.kernel, launch.grid, launch.block, arguments)


EVERY = [each for one in SHIPPED for each in families(one)]


def judge(family, one, defect, launch):
    """Whether the tool finds it, and whether the emulator does. What the emulator says of places, the tool says too."""
    name = FAMILIES[family]
    emulators, tools = checked(defect.data, launch), found(name, defect.data, launch)
    same = {places for kind, places in emulators if kind is KINDS[name]}
    if name == "racecheck":
        assert same <= {*tools}
    elif name == "waitcheck":
        used = [places for places in same if not any(places & each for each in tools)]
        assert not used
    else:
        assert {pc for places in same for pc in places} <= {pc for places in tools for pc in places}
    return bool(tools), bool(emulators)


def test_a_choice_of_defects():
    chosen = random.Random(5)
    by_family = [[each for each in EVERY if each[0] == family and each[1].name != "matmul"] for family in FAMILIES]
    for family in by_family:
        for each in chosen.sample(family, QUICK):
            assert judge(*each) == (True, True), each[2].what


@pytest.mark.slow
def test_all_defects_as_the_page_has_them():
    rows = {family: Counter() for family in FAMILIES}
    for family, *each in EVERY:
        tool, emulator = judge(family, *each)
        rows[family].update(defects=1, tool=tool, emulator=emulator)
    shown = [f"| {family} | {row['defects']} | `{FAMILIES[family]}` {row['tool']} | {row['emulator']} |"
             for family, row in rows.items()]
    assert "\n".join(shown) in PAGE.read_text(), "\n".join(shown)


def test_the_page_has_all_defects_and_all_tools():
    """What each row's first number counts, and which tools find anything; the other numbers take long."""
    page, numbers = PAGE.read_text(), Counter(family for family, *_ in EVERY)
    shown = re.findall(r"^\| ([A-Za-z ]+) \| (\d+) \| `\w+` \d+ \| \d+ \|$", page, re.MULTILINE)
    assert {family: int(number) for family, number in shown} == numbers and len(shown) == len(FAMILIES)
    tools = re.findall(r"^\| \[(\w+)\]\(\.\./tools/", page, re.MULTILINE)
    sources = (PAGE.parents[1] / "tools").glob("*/__init__.py")
    finding = {source.parent.name for source in sources if "\n    finds = True\n" in source.read_text()}
    assert len(tools) == 6 and "Six tools look" in page and {*tools} == finding


def test_pages_have_the_limits_of_the_code():
    remembered = re.search(r"FREED = (\d+)", (PAGE.parents[1] / "luthier_py/host/preload/allocated.c").read_text())
    assert f"Memory that is freed is remembered, the last {remembered[1]}." in PAGE.read_text()
    readmes = {name: (PAGE.parents[1] / "tools" / name / "README.md").read_text() for name in ("racecheck", "memcheck")}
    assert f"`MOST_RECORDS={load_tool('racecheck').most_records}`" in readmes["racecheck"]
    assert f"Of one instruction and place {EACH} accesses are compared" in readmes["racecheck"]
    assert f"| `TOLD_LANES={load_tool('memcheck').told_lanes}` |" in readmes["memcheck"]


@pytest.mark.parametrize("one", [pytest.param(each, id=each.name, marks=() if each.name == "histogram"
                                              else pytest.mark.slow) for each in SAMPLES])
def test_nothing_is_told_of_kernels_as_they_are(one):
    data, launch = one.path.read_bytes(), launch_of(one)
    outputs = run_original(EmulatorDevice(load(data).target), data, launch).outputs
    for name in ("memcheck", "racecheck", "initcheck", "synccheck", "waitcheck"):
        after = ran(name, data, launch)
        assert {n: each.tobytes() for n, each in after.outputs.items()} == {
            n: each.tobytes() for n, each in outputs.items()}
        assert after.report is None or not found(name, data, launch), name


SHOWN = {"racecheck": ("reduce", "barrier left out", 0x1650), "waitcheck": ("saxpy", "wait left out or weaker", 0x1910),
         "initcheck": ("reduce", "first store to LDS left out", 0x1644)}


@pytest.mark.parametrize("name", SHOWN)
def test_pages_show_what_is_said_of_a_defect(name):
    of, family, pc = SHOWN[name]
    page = (PAGE.parents[1] / "tools" / name / "README.md").read_text()
    (shown,) = re.findall(r"^> ```\n(.*?)\n> ```$", page, re.MULTILINE | re.DOTALL)
    shown = re.sub("^> ", "", shown, flags=re.MULTILINE)
    defect = next(each for each in families(sample(of)) if each[0] == family and each[2].pc == pc)
    assert ran(name, defect[2].data, defect[3]).text.startswith(shown)


BARRIERS = """
#define X __builtin_amdgcn_workitem_id_x()
#define WAVE (__builtin_amdgcn_readfirstlane(X) / __builtin_amdgcn_wavefrontsize())
#define KERNEL extern "C" __attribute__((global)) void
#define MEET __builtin_amdgcn_s_barrier()
KERNEL all(unsigned *out) { MEET; out[X] = X; MEET; }
KERNEL ended(unsigned *out) { if (WAVE == 1) return; MEET; out[X] = X; }
KERNEL elsewhere(unsigned *out) { if (WAVE == 1) { out[X] = 1; MEET; out[X] = 2; } else { MEET; out[X] = 3; } }
KERNEL lanes(unsigned *out) { if (X % 32 < 20) { MEET; out[X] = X; } else { out[X] = 1; } }
KERNEL once(unsigned *out) {
    __attribute__((shared)) static unsigned place[256];
    place[X] = X; MEET; out[X] = place[X ^ 64]; }
KERNEL twice(unsigned *out) {
    __attribute__((shared)) static unsigned place[256];
    place[X] = X; MEET; out[X] = place[X ^ 64]; place[X] = out[X]; }
"""
ENDED, ELSEWHERE = "ended", "elsewhere"


@pytest.mark.parametrize(("target", "wave_size"), [
    pytest.param("gfx90a", 64, marks=pytest.mark.slow), pytest.param("gfx1100", 32, marks=pytest.mark.slow),
    ("gfx1201", 32)])
def test_barriers_in_one_part_and_in_two(target, wave_size, require_tool, tmp_path):
    """By the emulator's check: which kernels, and how many work-groups or waves."""
    (tmp_path / "k.hip").write_text(BARRIERS)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", f"--offload-arch={target}", "k.hip", "-o", "k.co"],
                   cwd=tmp_path, check=True)
    data = (tmp_path / "k.co").read_bytes()
    for kernel in ("all", ENDED, ELSEWHERE, "lanes", "once", "twice"):
        launch = Launch(kernel, (3, 1, 1), (256, 1, 1), (parse_argument("out:u32[256]"),))
        kinds = Counter(kind for kind, _ in checked(data, launch))
        report = ran("synccheck", data, launch).report
        assert report["workgroups"] == (3 if kernel in (ENDED, ELSEWHERE) else 0)
        off = sum(row["with_lanes_off"] for row in report["barriers"])
        assert off == (3 * 256 // wave_size if kernel == "lanes" else 0)
        assert bool(off or report["workgroups"]) == bool(kinds[FindingKind.BARRIER])
        races = found("racecheck", data, launch)
        assert bool(races) == (kernel in ("twice", ELSEWHERE)) and len(races) <= kinds[FindingKind.RACE]


def test_an_access_that_is_told_is_not_made():
    """Without the guard it is, and the emulator ends the launch."""
    launch = next(each[3] for each in families(sample("vector_add")) if each[0] == "buffer one element short")
    data = sample("vector_add").path.read_bytes()
    (row,) = ran("memcheck", data, launch).report["bad"]
    assert row["count"] == 1
    assert [each["what"] for each in row["first"]] == ["0 bytes past the end of argument 0 (8188 bytes)"]
    assert not ran("memcheck", data, launch, told_lanes=0).report["bad"][0]["first"]
    with pytest.raises(DeviceError, match="bad address"):
        ran("memcheck", data, launch, guard=False)


BYTES = """
extern "C" __attribute__((global)) void turned(unsigned char *in, unsigned short *out) {
    unsigned x = __builtin_amdgcn_workitem_id_x(); if (x < 190) out[x] = in[189 - x]; }
"""


@pytest.mark.parametrize("target", ["gfx90a", pytest.param("gfx1201", marks=pytest.mark.slow)])
def test_bytes_at_the_end_of_memory_are_read_alone(target, require_tool, tmp_path):
    """initcheck compares dwords; the last one has two bytes that nobody has allocated."""
    (tmp_path / "k.hip").write_text(BYTES)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", f"--offload-arch={target}", "k.hip", "-o", "k.co"],
                   cwd=tmp_path, check=True)
    arguments = tuple(map(parse_argument, ("in:u8[190]=random:1", "out:u16[190]")))
    launch = Launch("turned", (1, 1, 1), (256, 1, 1), arguments)
    after = ran("initcheck", (tmp_path / "k.co").read_bytes(), launch)
    (taken,) = after.outputs.values()
    assert taken.tolist() == launch.arguments[0].data[::-1].tolist()
    assert after.report["unwritten"] == [] == after.report["left_out"]


def test_races_are_counted_without_their_pairs():
    """Beside every pair of random accesses that differ, looked at one by one."""
    rng = np.random.default_rng(3)
    kinds = np.array([AccessKind.LOAD, AccessKind.STORE, AccessKind.ATOMIC, AccessKind.STORE])
    for size in (0, 40, 200):
        site, wave, piece, value, waited = (rng.integers(0, most, size) for most in (4, 3, 5, 4, 3))
        waited.sort()
        came, order = waited + rng.integers(0, 2, size), np.arange(size)
        _, once = np.unique(np.stack([site, wave, piece, value]), axis=1, return_index=True)
        columns = [column[np.sort(once)] for column in (site, wave, came, waited, order, order, piece, value,
                                                        kinds[site])]
        taken = Accesses(*columns, 4, 0)
        pairs, racing = Counter(), set()
        for one, other in combinations(range(len(taken.site)), 2):
            kind = {int(taken.kind[one]), int(taken.kind[other])}
            if (taken.piece[one] == taken.piece[other] and taken.wave[one] != taken.wave[other]
                    and max(taken.waited[[one, other]]) <= min(taken.came[[one, other]])
                    and kind not in ({AccessKind.LOAD}, {AccessKind.ATOMIC})
                    and not (kind == {AccessKind.STORE} and taken.value[one] == taken.value[other])):
                pairs[tuple(sorted(taken.site[[one, other]].tolist()))] += 1
                racing.add((one, other))
        told = {tuple(sorted(taken.site[[race.first, race.second]].tolist())): race for race in between_waves(taken)}
        assert {key: race.count for key, race in told.items()} == pairs and bool(pairs) == (size > 0)
        assert {tuple(sorted((race.first, race.second))) for race in told.values()} <= racing


def test_what_is_beyond_the_records_of_a_launch_is_not_judged_and_told():
    one = sample("reduce")
    whole = ran("racecheck", one.path.read_bytes(), launch_of(one)).report
    for name in ("racecheck", "initcheck"):
        after = ran(name, one.path.read_bytes(), launch_of(one), most_records=40)
        groups = after.report["not_judged"]
        assert groups > 0 and f"not judged: {groups} work-group" in after.text
        assert not after.report.get("races") and not after.report.get("unwritten")
        assert after.report["accesses"] < whole["accesses"]


def test_memory_is_left_alone_where_nobody_asks_for_it():
    one = sample("reduce")
    whole, lds = (ran("racecheck", one.path.read_bytes(), launch_of(one), memory=memory).report for memory in (1, 0))
    assert lds == {**whole, "memory_accesses": 0} and whole["memory_accesses"] > 0
