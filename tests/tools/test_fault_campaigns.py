"""Campaigns of faults: effects are those of a model of the kernel that shares nothing with the emulator or the tool."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from struct import unpack_from

import numpy as np
import pytest

from luthier_py.emulator.record_file import read_record
from luthier_py.emulator.recorded import RecordedLaunch
from luthier_py.report.faults import wilson
from luthier_py.samples import FOLDER, sample
from luthier_py.session.faults import Campaign, run_campaign
from luthier_py.session.faults.bench import FaultBench, FaultEffect, JudgedFault, fault_bench
from luthier_py.session.faults.drawing import MODELS, InjectedFault, drawn
from luthier_py.session.launched import launch_file
from luthier_py.session.recording import RecordingDevice
from luthier_py.session.run import Launch
from luthier_py.session.run_settings import run_settings
from luthier_py.session.specs import parse_argument

EMULATOR = run_settings("emulator")
SAXPY = "u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2"
LANES = np.arange(64)


def record(code: Path, name: str, grid: int, block: int, arguments: Sequence[str], path: Path) -> Path:
    launch = Launch(name, (grid, 1, 1), (block, 1, 1), tuple(map(parse_argument, arguments)))
    done = launch_file(code, launch, None, run_settings("emulator", record=path))
    assert isinstance(done.device, RecordingDevice)
    done.device.save(path)
    del done
    gc.collect()  # its memory is where that of replays in this process is to be
    return path


@pytest.fixture(scope="module")
def saxpy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(sample("saxpy").path, "saxpy", 4, 256, SAXPY, tmp_path_factory.mktemp("recorded") / "saxpy.lrec")


class BadAddress(Exception):
    """Nothing is there."""


def is_scalar(name: str) -> bool:
    return name[0] == "s" or name.startswith("vcc")


class SaxpyModel:
    """tests/data/saxpy.co instruction by instruction, in NumPy, with a fault (mutable: memory, registers)."""

    def __init__(self, record: RecordedLaunch, memory: dict[int, bytes], fault: InjectedFault | None) -> None:
        self.kernarg, self.fault, self.hit = record.kernarg, fault, None
        self.memory = {address: bytearray(data) for address, data in memory.items()}

    def run(self) -> dict[int, bytes]:
        for wave in range(16):
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
            if 0 <= self.left < len(lanes):
                self.strike(pc, name, lanes[self.left])
            self.left -= len(lanes)

    def strike(self, pc: int, name: str, lane: int | None) -> None:
        before = int(self.r[name] if lane is None else self.r[name][lane])
        two = 1 << (self.fault.bit + 1) % 32
        after = {"flip": before ^ 1 << self.fault.bit, "flip_two": before ^ 1 << self.fault.bit ^ two,
                 "value": self.fault.mask, "zero": 0}[self.fault.model]
        self.hit = {"pc": pc, "register": name, "lane": lane, "before": before, "after": after}
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


def modelled(bench: FaultBench, fault: InjectedFault, golden: dict[int, bytes]) -> tuple[FaultEffect, dict, object]:
    """Effect, what was hit, and memory."""
    model = SaxpyModel(bench.launch.record, {each.address: data for each, data in bench.launch.before}, fault)
    try:
        left = model.run()
    except BadAddress:
        return FaultEffect.CRASH, model.hit, None
    return FaultEffect.MASKED if left == golden else FaultEffect.SDC, model.hit, left


def memory_of(bench: FaultBench, contents: list[bytes] | tuple[bytes, ...]) -> dict[int, bytes]:
    return {each.address: data for (each, _), data in zip(bench.launch.before, contents, strict=True)}


def test_effects_are_those_of_a_model(saxpy: Path) -> None:
    """60 faults of all models: what is hit, its value, the effect, and all memory afterwards."""
    record = read_record(saxpy)
    with fault_bench(record, saxpy, {}, EMULATOR) as bench:
        golden = memory_of(bench, bench.golden)
        assert SaxpyModel(record, memory_of(bench, [data for _, data in bench.launch.before]), None).run() == golden
        effects = Counter[FaultEffect]()
        for number in range(60):
            fault = drawn(number, 7, MODELS, bench.written)
            found = bench.judged(fault)
            effect, hit, left = modelled(bench, fault, golden)
            assert (found.effect, hit) == (effect, {name: found.hit[name] for name in hit}), fault
            assert left is None or left == memory_of(bench, bench.launch.after), fault
            effects[effect] += 1
    assert all(effects[each] >= 3 for each in (FaultEffect.MASKED, FaultEffect.SDC, FaultEffect.CRASH)), effects
