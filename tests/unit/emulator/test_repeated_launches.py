"""Launches again and again: what native code begins leaves what dispatch leaves, whatever came before.

Every sequence runs on two devices, one of which begins no launch natively; samples compute what their references do.
"""

from __future__ import annotations

import random
import re
import struct
import threading
import time
from dataclasses import dataclass, field, replace
from unittest.mock import Mock, patch

import numpy as np
import pytest
from emulated import ISA, KERNARG_BYTES, code_object

from luthier_py.base.errors import DeviceError, TimeLimit
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.devices import module as emulator_module
from luthier_py.emulator.interface import Module, pack_arguments
from luthier_py.emulator.launches import ready
from luthier_py.emulator.launches.dispatch import LaunchLimits, Worker
from luthier_py.emulator.records.layout import WORKER
from luthier_py.features.run.specs import BufferSpec, parse_argument
from luthier_py.isa import sgpr, target, vgpr
from luthier_py.samples import SAMPLES, Sample

TARGET = target("gfx90a")
PLACE = re.compile(r"0x[0-9a-f]+; .*")
LAUNCHES = 60


def counts(device: EmulatorDevice) -> tuple[dict[int, int], ...]:
    assert device.profile is not None
    return tuple(dict(part) for part in (device.profile.counts, device.profile.lanes, device.profile.active))


@dataclass
class Bench:
    """One device, and what is loaded on it."""

    natively: bool
    device: EmulatorDevice = field(init=False)
    modules: dict[str, Module] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.device = EmulatorDevice(TARGET)
        self.device.natively = self.natively

    def run(self, one: Sample, wild: int | None) -> object:
        """What a launch leaves and counts, or why it fails; ``wild``: a buffer that is not there."""
        device = self.device
        if one.name not in self.modules:
            self.modules[one.name] = device.load(one.path.read_bytes())
        kernel = self.modules[one.name].kernel(one.name)
        specs = [parse_argument(text) for text in one.args]
        values = [device.alloc(spec.data.nbytes) if isinstance(spec, BufferSpec) else spec.data for spec in specs]
        buffers = [(spec, value) for spec, value in zip(specs, values, strict=True) if isinstance(spec, BufferSpec)]
        for spec, buffer in buffers:
            device.write(buffer.address, spec.data.tobytes())
        if wild is not None:
            place = values.index(buffers[wild % len(buffers)][1])
            given = [*values[:place], replace(buffers[wild % len(buffers)][1], address=0x40), *values[place + 1 :]]
        else:
            given = values
        try:
            device.launch(kernel, one.grid, one.block, pack_arguments(kernel.record, given, one.grid, one.block))
        except DeviceError as error:
            assert error.fault is not None
            return PLACE.sub("", str(error)), error.fault.kind, error.fault.address
        finally:
            left = [device.read(buffer.address, buffer.size) for _, buffer in buffers]
            for _, buffer in buffers:
                device.free(buffer)
        outputs = [np.frombuffer(data, spec.data.dtype).reshape(spec.data.shape)
                   for data, (spec, _) in zip(left, buffers, strict=True) if spec.is_output]
        expected = one.reference([spec.data for spec in specs])
        assert all(one.agrees(*pair) for pair in zip(outputs, expected, strict=True))
        return left, counts(device)


@pytest.mark.parametrize("seed", range(4))
def test_as_dispatch_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples in any order, some with an address that is wrong, modules that go in between; few launches are kept."""
    monkeypatch.setattr(emulator_module, "KEPT_LAUNCHES", 1 + seed)
    dice = random.Random(seed)
    chosen = dice.sample(SAMPLES, 4)
    benches = [Bench(natively=True), Bench(natively=False)]
    failed = 0
    for _ in range(LAUNCHES // 2):
        one = dice.choice(chosen)
        wild = dice.randrange(4) if dice.random() < 0.2 else None
        native, dispatched = (bench.run(one, wild) for bench in benches)
        assert native == dispatched
        failed += wild is not None
        if dice.random() < 0.1:
            for bench in benches:
                bench.modules.pop(one.name).unload()
    assert failed


SECOND_ENTRY = [("s_nop", 0)] * 64  # waves whose arguments are preloaded start behind them
STORE = [
    ("v_mov_b32", vgpr(2), 0), ("v_mov_b32", vgpr(1), sgpr(8)), ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0),
    ("s_waitcnt", 0), ISA.make("global_store_dword", vgpr(2), vgpr(1), sgpr(0, 2)).raw, ("s_endpgm",),
]  # what is in s8 to where the first argument points


def test_arguments_in_registers_are_each_launchs_own() -> None:
    device = EmulatorDevice(TARGET)
    kernel = device.load(code_object({"k": [*SECOND_ENTRY, *STORE]}, preload=4)).kernel("k")
    assert kernel.record.descriptor.user_sgpr_count == 10, "s8 is the third dword of the arguments"
    buffers = [device.alloc(4) for _ in range(2)]
    for number in range(6):
        buffer = buffers[number % 2]
        kernarg = struct.pack("<2Q", buffer.address, 0x1234 + number).ljust(KERNARG_BYTES, b"\0")
        device.launch(kernel, (1, 1, 1), (64, 1, 1), kernarg)
        assert device.read(buffer.address, 4) == struct.pack("<I", 0x1234 + number)


@pytest.mark.parametrize("natively", (True, False))
def test_what_was_freed_is_out_of_reach(natively: bool) -> None:
    """Although the last launch has found it there, and the next one is the same."""
    device = EmulatorDevice(TARGET)
    device.natively = natively
    kernel = device.load(code_object({"k": STORE})).kernel("k")
    device.alloc(1 << 12)
    buffer = device.alloc(1 << 12)
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    device.launch(kernel, (1, 1, 1), (64, 1, 1), kernarg)
    device.free(buffer)
    for _ in range(2):
        with pytest.raises(DeviceError, match=f"bad address 0x{buffer.address:x}"):
            device.launch(kernel, (1, 1, 1), (64, 1, 1), kernarg)


def test_counts_are_of_one_launch() -> None:
    """A launch that has failed leaves none behind."""
    device = EmulatorDevice(TARGET)
    kernel = device.load(code_object({"k": STORE})).kernel("k")
    buffer = device.alloc(4)
    for address in (buffer.address, 64, buffer.address, 64, 64, buffer.address):
        kernarg = struct.pack("<Q", address).ljust(KERNARG_BYTES, b"\0")
        if address == 64:
            with pytest.raises(DeviceError, match="bad address 0x40"):
                device.launch(kernel, (3, 1, 1), (64, 1, 1), kernarg)
        else:
            device.launch(kernel, (3, 1, 1), (64, 1, 1), kernarg)
            assert device.profile is not None and device.profile.total == 3 * len(STORE)


def test_a_limit_holds_for_each_launch() -> None:
    device = EmulatorDevice(TARGET)
    rows = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("s_cmp_eq_u32", sgpr(0), 0), "again:",
            ("s_cbranch_scc0", "again"), ("s_endpgm",)]
    kernel = device.load(code_object({"k": rows})).kernel("k")
    ends, never = (struct.pack("<Q", number).ljust(KERNARG_BYTES, b"\0") for number in (0, 1))
    for limit in (None, 0.2):
        device.limits = LaunchLimits(limit, others_write=limit is not None)
        device.launch(kernel, (2, 1, 1), (64, 1, 1), ends)
        with pytest.raises(TimeLimit if limit else DeviceError, match="no end within" if limit else "deadlock"):
            device.launch(kernel, (2, 1, 1), (64, 1, 1), never)
        device.launch(kernel, (2, 1, 1), (64, 1, 1), ends)


@pytest.mark.parametrize("nanoseconds", (0, 10**9))
def test_threads_share_what_is_large(nanoseconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sooner or later; nothing is done twice, or left out."""
    monkeypatch.setattr(ready, "ALONE_NANOSECONDS", nanoseconds)
    device, groups = EmulatorDevice(TARGET, threads=2), 200
    rows = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("v_mov_b32", vgpr(2), 0), ("v_mov_b32", vgpr(1), 1),
            ("s_waitcnt", 0), ISA.make("global_atomic_add", vgpr(2), vgpr(1), sgpr(0, 2)).raw, ("s_endpgm",)]
    kernel = device.load(code_object({"k": rows})).kernel("k")
    buffer = device.alloc(4)
    for number in range(1, 4):
        kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
        device.launch(kernel, (groups, 1, 1), (64, 1, 1), kernarg)
        assert device.read(buffer.address, 4) == struct.pack("<I", 64 * groups * number)
        assert device.profile is not None and device.profile.total == groups * len(rows)


@pytest.mark.parametrize("others_write", (False, True))
@pytest.mark.parametrize("natively", (True, False))
def test_a_worker_is_alone_where_nobody_else_writes(natively: bool, others_write: bool) -> None:
    """Then its atomics are plain operations."""
    device = EmulatorDevice(TARGET, others_write=others_write)
    device.natively = natively
    module = device.load(code_object({"k": [("s_sleep", 1), ("s_endpgm",)]}))
    given = device.ready(module.kernel("k"), (2, 1, 1), (64, 1, 1), KERNARG_BYTES)
    seen: list[int] = []
    with patch.object(Worker, "leave", lambda worker: seen.append(worker.record[WORKER["alone"] // 8])):
        for external_writers in ([], [Mock(changes=0)], []):
            device.external_writers = external_writers
            device.run(given, bytes(KERNARG_BYTES))
            alone = not (others_write or external_writers)
            assert seen[-1:] == ([] if natively else [alone])
            assert not natively or given.worker[WORKER["alone"] // 8] == alone


def test_a_launch_that_native_code_runs_can_be_cancelled() -> None:
    """And says how far it is; the next one is not."""
    device = EmulatorDevice(TARGET)
    kernel = device.load(code_object({"k": [("s_endpgm",)]})).kernel("k")
    seen: list[tuple[int, int]] = []

    def cancel() -> None:
        while (begun := device.begun) is None or begun[0] < 100:
            time.sleep(0.001)
        seen.append(begun)
        device.cancel("enough of that")

    for _ in range(2):
        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(DeviceError, match="enough of that"):
            device.launch(kernel, (1 << 25, 1 << 12, 1), (64, 1, 1), bytes(KERNARG_BYTES))
        thread.join()
        device.launch(kernel, (3, 1, 1), (64, 1, 1), bytes(KERNARG_BYTES))
        assert device.profile is not None and device.profile.total == 3 and device.begun is None
    assert all(begun < total == 1 << 37 for begun, total in seen)


def test_what_is_kept_goes_with_the_module() -> None:
    device = EmulatorDevice(TARGET)
    buffer = device.alloc(4)
    before = device.memory.table()
    module = device.load(code_object({"k": STORE}))
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    for groups in range(1, 4):
        device.launch(module.kernel("k"), (groups, 1, 1), (64, 1, 1), kernarg)
    module.unload()
    assert device.memory.table() == before
