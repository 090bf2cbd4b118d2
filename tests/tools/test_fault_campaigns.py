"""Campaigns of faults: effects are those of a model of the kernel that shares nothing with the emulator or the tool."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from struct import unpack_from

import numpy as np
import pytest
from compiled_samples import CompiledSamples
from kept_launches import kept

from luthier_py.binary.loader import load
from luthier_py.emulator.devices.record_file import read_record
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch
from luthier_py.features.campaign.store import RowStore
from luthier_py.features.code.disassembly import disassemble
from luthier_py.features.faults.bench import FaultBench, fault_bench
from luthier_py.features.faults.campaign import read_recorded_subjects, run_campaign
from luthier_py.features.faults.drawing import MODELS, OF_OPCODE, ONCE, STUCK, FaultCampaign, InjectedFault, draw_fault
from luthier_py.features.faults.judging import FaultEffect, Injection, judge_fault
from luthier_py.features.faults.report import wilson
from luthier_py.features.run.launch import Launch
from luthier_py.features.run.specs import parse_argument
from luthier_py.features.settings.run_settings import run_settings
from luthier_py.samples import sample

EMULATOR = run_settings("emulator")
SAXPY = "u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2"
LANES = np.arange(64)


def record(code: Path, name: str, grid: int, block: int, arguments: Sequence[str], path: Path) -> Path:
    launch = Launch(name, (grid, 1, 1), (block, 1, 1), tuple(map(parse_argument, arguments)))
    return kept(code, launch, path)


@pytest.fixture(scope="module")
def saxpy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(sample("saxpy").path, "saxpy", 4, 256, SAXPY, tmp_path_factory.mktemp("recorded") / "saxpy.lrec")


class BadAddress(Exception):
    """Nothing is there."""


def is_scalar(name: str) -> bool:
    return name[0] == "s" or name.startswith("vcc")


class SaxpyModel:
    """tests/data/saxpy.co instruction by instruction, in NumPy, with a fault (mutable: memory, registers). ``always``:
    addresses of instructions whose results are always wrong in the lane ``always_in``, or in all."""

    def __init__(self, record: RecordedLaunch, memory: dict[int, bytes], fault: InjectedFault | None,
                 always: frozenset[int] = frozenset(), always_in: int | None = None) -> None:
        self.kernarg, self.fault, self.hit = record.kernarg, fault, None
        self.always, self.always_in = always, always_in
        self.memory = {address: bytearray(data) for address, data in memory.items()}

    def run(self) -> dict[int, bytes]:
        for wave in range(16):
            self.wave, self.stuck = wave, None
            self.left = self.fault.when if self.fault is not None and self.fault.wave == wave else -1
            self.run_wave(wave)
        return {address: bytes(data) for address, data in self.memory.items()}

    def run_wave(self, wave: int) -> None:
        r = self.r = {"s6": wave // 4, "v0": wave % 4 * 64 + LANES, "v2": 0 * LANES, "v3": 0 * LANES}
        self.active, step = np.full(64, True), self.step
        step(0x1900, s2=self.argument(0x24))
        step(0x1908, s0=self.argument(0), s1=self.argument(4))
        step(0x1914, s2=r["s2"] & 0xFFFF)
        step(0x191C, s6=r["s6"] * r["s2"])
        step(0x1920, v0=r["v0"] + r["s6"])
        step(0x1924, **self.vcc(r["s0"] > r["v0"]))
        self.active = self.mask()
        step(0x1928, s2=0xFFFFFFFF, s3=0xFFFFFFFF)
        if not self.active.any():
            return
        step(0x1930, **{f"s{8 + at}": self.argument(8 + 4 * at) for at in range(4)})
        step(0x1938, v1=0 * LANES)
        wide = (r["v1"] << 32 | r["v0"]) << 2
        step(0x193C, v0=wide, v1=wide >> 32)
        step(0x1948, v3=r["s9"] + 0 * LANES)
        self.add(0x194C, "v2", r["s8"] + r["v0"])
        self.add(0x1950, "v3", r["v3"] + r["v1"] + self.mask())
        step(0x1954, v2=self.load())
        step(0x195C, v3=r["s11"] + 0 * LANES)
        self.add(0x1960, "v0", r["s10"] + r["v0"])
        self.add(0x1964, "v1", r["v3"] + r["v1"] + self.mask())
        step(0x1968, v3=self.load("v0", "v1"))
        a, x, y = (np.asarray(r[each], np.uint32).view(np.float32).astype(np.float64) for each in ("s1", "v2", "v3"))
        with np.errstate(all="ignore"):
            step(0x1974, v3=(a * x + y).astype(np.float32).view(np.uint32).astype(np.int64))
        self.store()

    def argument(self, offset: int) -> int:
        return unpack_from("<I", self.kernarg, offset)[0]

    def vcc(self, lanes: np.ndarray) -> dict[str, int]:
        bits = sum(1 << int(lane) for lane in np.flatnonzero(lanes & self.active))
        return {"vcc_lo": bits & 0xFFFFFFFF, "vcc_hi": bits >> 32}

    def mask(self) -> np.ndarray:
        return np.array([self.r["vcc_hi" if lane & 32 else "vcc_lo"] >> lane % 32 & 1 == 1 for lane in range(64)])

    def add(self, pc: int, to: str, total: np.ndarray) -> None:
        self.step(pc, **self.vcc(total >> 32 == 1), **{to: total})

    def step(self, pc: int, **writes: int | np.ndarray) -> None:
        """What an instruction writes, and then the fault, if its turn comes."""
        for name, value in writes.items():
            wrapped = value & 0xFFFFFFFF
            self.r[name] = wrapped if is_scalar(name) else np.where(self.active, wrapped, self.r.get(name, 0))
        for name in writes:
            lanes = [None] if is_scalar(name) else np.flatnonzero(self.active).tolist()
            if 0 <= self.left < len(lanes) and not self.always:
                self.strike(pc, name, lanes[self.left])
                self.stuck = name, lanes[self.left]
            elif self.fault is not None and self.fault.model in STUCK and self.stuck is not None:
                if self.stuck[0] == name and self.stuck[1] in lanes:
                    self.strike(pc, *self.stuck)
            for lane in lanes if pc in self.always else ():
                if lane is None or self.always_in in (None, lane):
                    self.strike(pc, name, lane)
            self.left -= len(lanes)

    def strike(self, pc: int, name: str, lane: int | None) -> None:
        before = int(self.r[name] if lane is None else self.r[name][lane])
        bit, two = 1 << self.fault.bit, 1 << (self.fault.bit + 1) % 32
        after = {"flip": before ^ bit, "flip_two": before ^ bit ^ two, "value": self.fault.mask, "zero": 0,
                 "stuck_0": before & ~bit, "stuck_1": before | bit, "opcode_0": before & ~bit, "opcode_1": before | bit,
                 "opcode_flip": before ^ bit, "none": before}[self.fault.model]
        self.hit = self.hit or {"pc": pc, "register": name, "lane": lane, "before": before, "after": after,
                                "wave": self.wave}
        if lane is None:
            self.r[name] = after
        else:
            self.r[name][lane] = after

    def places(self, low: str, high: str) -> Iterator[tuple[int, bytearray, int]]:
        """Lane, allocation and offset of each access."""
        for lane in np.flatnonzero(self.active).tolist():
            address = int(self.r[high][lane]) << 32 | int(self.r[low][lane])
            found = [each for each, data in self.memory.items() if each <= address <= each + len(data) - 4]
            if not found:
                raise BadAddress
            yield lane, self.memory[found[0]], address - found[0]

    def load(self, low: str = "v2", high: str = "v3") -> np.ndarray:
        got = 0 * LANES
        for lane, data, offset in self.places(low, high):
            got[lane] = unpack_from("<I", data, offset)[0]
        return got

    def store(self) -> None:
        for lane, data, offset in list(self.places("v0", "v1")):
            data[offset : offset + 4] = int(self.r["v3"][lane]).to_bytes(4, "little")


def same_opcode(pc: int) -> frozenset[int]:
    """Addresses of all instructions of saxpy with the opcode of this one."""
    rows = [line.partition("//") for line in disassemble(load(sample("saxpy").path.read_bytes(), "saxpy"), "saxpy")]
    opcodes = {int(where.split(":")[0], 16): text.split()[0] for text, _, where in rows if where and text.split()}
    return frozenset(each for each, opcode in opcodes.items() if opcode == opcodes[pc])


def modelled(bench: FaultBench, fault: InjectedFault, golden: dict[int, bytes]) -> tuple[FaultEffect, dict, object]:
    """Effect, what was hit, and memory."""
    memory = {each.address: data for each, data in bench.launch.before}
    model = SaxpyModel(bench.launch.record, memory, fault)
    if fault.model in OF_OPCODE:
        look = SaxpyModel(bench.launch.record, memory, replace(fault, model="none"))
        look.run()
        model = SaxpyModel(bench.launch.record, memory, fault, same_opcode(look.hit["pc"]), look.hit["lane"] or 0)
    try:
        left = model.run()
    except BadAddress:
        return FaultEffect.CRASH, model.hit, None
    return FaultEffect.MASKED if left == golden else FaultEffect.SDC, model.hit, left


def memory_of(bench: FaultBench, contents: list[bytes] | tuple[bytes, ...]) -> dict[int, bytes]:
    return {each.address: data for (each, _), data in zip(bench.launch.before, contents, strict=True)}


@pytest.mark.parametrize("faults", [45, pytest.param(90, marks=pytest.mark.slow)])
def test_effects_are_those_of_a_model(faults: int, saxpy: Path) -> None:
    """Faults of all models: what is hit, its value, the effect, and all memory afterwards."""
    record = read_record(saxpy)
    with fault_bench(record, saxpy, {}, EMULATOR) as bench:
        golden = memory_of(bench, bench.golden)
        assert SaxpyModel(record, memory_of(bench, [data for _, data in bench.launch.before]), None).run() == golden
        effects = Counter[tuple[bool, FaultEffect]]()
        for number in range(faults):
            fault = draw_fault(number, 7, MODELS, bench.written)
            found = judge_fault(bench, fault, {}, every_lane=False).injection
            effect, hit, left = modelled(bench, fault, golden)
            assert (found.effect, hit) == (effect, {name: found.hit[name] for name in hit}), fault
            assert left is None or left == memory_of(bench, bench.launch.after), fault
            effects[fault.model in ONCE, effect] += 1
    seen = FaultEffect.MASKED, FaultEffect.SDC, FaultEffect.CRASH
    assert all(effects[once, each] for once in (True, False) for each in seen), effects


def test_a_bit_that_is_stuck_in_every_lane(saxpy: Path) -> None:
    """Bit 2 of x, from wave 5 on as the program loads it, or in what all loads give: y is what NumPy says of such x."""
    record = read_record(saxpy)
    with fault_bench(record, saxpy, {"INSTRUMENT": "pc = 0x1954"}, EMULATOR) as bench:
        (x_at, y_at), a = (int.from_bytes(record.kernarg[at : at + 8], "little") for at in (8, 16)), np.float32(0.7)
        before = memory_of(bench, [data for _, data in bench.launch.before])
        x, y = (np.frombuffer(before[at], np.uint32)[:1000] for at in (x_at, y_at))
        for model, of in (("stuck_1", slice(320, 384)), ("opcode_1", slice(None))):
            found = judge_fault(bench, InjectedFault(0, model, 5, 3, 20, 0), {"INSTRUMENT": "pc = 0x1954"},
                                every_lane=True)
            wrong = x.copy()
            wrong[of] |= 1 << 20
            sums = np.float64(a) * wrong.view(np.float32) + y.view(np.float32)
            left = np.frombuffer(memory_of(bench, bench.launch.after)[y_at], np.float32)[:1000]
            assert np.array_equal(left, sums.astype(np.float32)) and found.injection.effect is FaultEffect.SDC
            assert found.options["LANE"] == "-1"


def alone(path: Path, options: dict[str, str], fault: InjectedFault) -> Injection:
    gc.collect()
    with fault_bench(read_record(path), path, options, EMULATOR) as bench:
        return judge_fault(bench, fault, options, every_lane=False).injection


def test_a_value_that_nobody_reads(saxpy: Path) -> None:
    """The carry of the last addition of an address; its sum, one register further, is an address."""
    gc.collect()
    options = {"INSTRUMENT": "pc = 0x1964"}
    with fault_bench(read_record(saxpy), saxpy, options, EMULATOR) as bench:
        for when, effect in ((0, FaultEffect.MASKED), (1, FaultEffect.MASKED), (2, FaultEffect.CRASH)):
            fault = InjectedFault(0, "flip", 4, when, 20, 0)
            found = judge_fault(bench, fault, options, every_lane=False).injection
            assert found.effect is effect and found.hit is not None
            assert found.hit["register"] == ("vcc_lo", "vcc_hi", "v1")[when]
    assert "bad address" in found.why and "global_load_dword v3" in found.why


def test_a_loop_that_does_not_end(tmp_path: Path) -> None:
    """The counter of iterations becomes negative, so 2^31 of them are left to 0, a point of the set."""
    path = record(sample("mandelbrot").path, "mandelbrot", 1, 64,
                  ("u32=64", "u32=1", "f32=0", "f32=0", "f32=0", "u32=20", "out:u32[64]"), tmp_path / "mandelbrot.lrec")
    found = alone(path, {"INSTRUMENT": "pc = 0x19d4"}, InjectedFault(0, "flip", 0, 0, 31, 0))
    assert found.effect is FaultEffect.HANG and found.hit is not None
    assert re.search(r"no end within the limit of \d+ instructions", found.why)
    assert (found.hit["before"], found.hit["after"], found.hit["lane"]) == (1, 0x80000001, None)


@pytest.mark.parametrize(("target", "size"), [("gfx1100", 32), pytest.param("gfx1201", 32, marks=pytest.mark.slow)])
def test_results_on_other_targets(target: str, size: int, require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Flips in what the multiply-add writes are flips in y, one each, and nothing else changes in memory."""
    code = CompiledSamples(require_tool("clang-22"), tmp_path).path("saxpy", target, size)
    path = record(code, "saxpy", 4, 256, SAXPY, tmp_path / "saxpy.lrec")
    with fault_bench(read_record(path), path, {"INSTRUMENT": "float"}, EMULATOR) as bench:
        assert sum(map(sum, bench.written)) == 1000
        y = int.from_bytes(bench.launch.record.kernarg[16:24], "little")
        for number in range(15):
            fault = draw_fault(number, 3, ("flip",), bench.written)
            found, wanted = judge_fault(bench, fault, {}, every_lane=False).injection, memory_of(bench, bench.golden)
            place = 4 * (size * fault.wave + fault.when)
            right = int.from_bytes(wanted[y][place : place + 4], "little")
            wrong = (right ^ 1 << fault.bit).to_bytes(4, "little")
            assert found.effect is FaultEffect.SDC and found.hit is not None and found.hit["before"] == right
            wanted[y] = wanted[y][:place] + wrong + wanted[y][place + 4 :]
            assert memory_of(bench, bench.launch.after) == wanted


def rows_in(folder: Path) -> list[dict]:
    (path,) = folder.glob("*.ndjson")
    return [*RowStore(path, "number").read(range(100)).values()]


def test_a_campaign_goes_on_where_it_was(saxpy: Path, tmp_path: Path) -> None:
    """Killed while it wrote a line: what comes is what comes without; another seed is another campaign."""
    def run(folder: str, faults: int, seed: int = 1) -> tuple[dict, int]:
        gc.collect()
        calls = list[None]()
        campaign = FaultCampaign(faults, seed, ("flip", "zero"), {})
        ended = lambda: calls.append(None)  # noqa: E731
        return run_campaign(read_recorded_subjects([saxpy], 0), campaign, tmp_path / folder, EMULATOR, ended), len(
            calls
        )

    whole, calls = run("whole", 8)
    assert calls == 8 and whole["all"]["judged"] == 8
    run("cut", 5)
    (path,) = (tmp_path / "cut").glob("*.ndjson")
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + 5
    path.write_bytes(b"".join(lines[:4]) + lines[4][:40])
    assert run("cut", 8)[0]["by"] == whole["by"] and rows_in(tmp_path / "cut") == rows_in(tmp_path / "whole")
    untouched = path.stat().st_mtime_ns
    assert run("cut", 8)[0]["by"] == whole["by"] and path.stat().st_mtime_ns == untouched
    run("other", 3, seed=2)
    assert [row["again"] for row in rows_in(tmp_path / "other")] != [row["again"] for row in rows_in(
        tmp_path / "whole")[:3]]


def test_faults_are_drawn_evenly() -> None:
    """Each register as often as any other: by wave, bit and place, within five standard deviations."""
    written = (300, 0), (), (100, 600)
    found = [draw_fault(number, 1, ("flip", "value"), written) for number in range(4000)]
    assert all(each.when < written[each.launch][each.wave] for each in found)
    found = [replace(each, wave=each.launch + each.wave) for each in found]
    for count, share in ((sum(each.wave == 0 for each in found), 0.3), (sum(each.wave == 3 for each in found), 0.6),
                         (sum(each.bit < 8 for each in found), 0.25), (sum(each.mask >> 31 for each in found), 0.5),
                         (sum(each.wave == 3 and each.when < 60 for each in found), 0.06),
                         (sum(each.model == "flip" for each in found), 0.5)):
        assert abs(count - 4000 * share) < 5 * (4000 * share * (1 - share)) ** 0.5


def test_intervals() -> None:
    """Hand values: 0 of n is up to z^2 / (n + z^2); 1 of 2 is 1/2 +- z / (2 sqrt(2 + z^2))."""
    z = 1.959964
    assert wilson(0, 10) == pytest.approx((0, z**2 / (10 + z**2)), abs=1e-6)
    assert wilson(10, 10) == pytest.approx((10 / (10 + z**2), 1), abs=1e-6)
    half = z / (2 * (2 + z**2) ** 0.5)
    assert wilson(1, 2) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=5e-5)
    assert wilson(1, 100) == pytest.approx((0.0018, 0.0545), abs=5e-5)
