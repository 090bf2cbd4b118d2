"""What is damaged: instrumented kernels of every target, small, and with a launch where the emulator has the target.

In: a name. Out: a Subject: the original's bytes, the copy's, what was claimed of it, and how to run it. Invariant:
what a launch leaves in the application's memory depends on all state that the kernel has, so that harm is seen.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("", "property")]

import numpy as np  # noqa: E402
from fuzz_kernels import kernel_object  # noqa: E402  (importable only now)
from random_kernels import INPUT_BYTES, PROBES, SLOT_BYTES, TEMPORARY, kernel  # noqa: E402
from random_tool import RandomTool  # noqa: E402
from seed_objects import seeds  # noqa: E402
from synthetic import Row, assemble  # noqa: E402

from luthier_py.binary.loader import load  # noqa: E402
from luthier_py.emulator import EmulatorDevice, LaunchOptions  # noqa: E402
from luthier_py.features.demo.samples import launch_of  # noqa: E402
from luthier_py.features.run.launch import run_launch  # noqa: E402
from luthier_py.isa import InstructionSet, Target, agpr, instruction_set, target, targets, vgpr  # noqa: E402
from luthier_py.rewrite.pipeline import Instrumented, instrument  # noqa: E402
from luthier_py.rewrite.tool import Tool, load_tool  # noqa: E402
from luthier_py.samples import Sample, sample  # noqa: E402

LANES = 64
TIME_LIMIT = 3.0  # seconds, for kernels that end in milliseconds
BANKS = "banks"
TOOLS = {
    "blocks": ("instr_count", {}),
    "instructions": ("instr_count", {"mode": "instruction"}),
    "active": ("instr_count", {"EXCLUDE_PRED_OFF": "1"}),
    "threads": ("instr_count", {"COUNT_WARP_LEVEL": "0"}),
    "opcodes": ("opcode_histogram", {"EXCLUDE_PRED_OFF": "1"}),
    BANKS: ("lds_bank_conflicts", {}),
}
RANDOM = "random"
SAMPLES = ("reduce", "device_call", "function_pointers", "scratch", "histogram", "lds_widths")
Memory = tuple[bytes, ...]
Run = Callable[[bytes, str], Memory]


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One instrumented object. ``run``: what a launch of one of its kernels leaves; None where nothing runs it."""

    name: str
    isa: InstructionSet
    made: Instrumented
    kernel: str
    run: Run | None

    @property
    def original(self) -> bytes:
        return self.made.obj.data

    @property
    def clone(self) -> str:
        return self.kernel + ".luthier"


@cache
def names() -> list[str]:
    """Of all subjects: kernel, target and tool."""
    gpus = [gpu.name for gpu in targets() if gpu.generation == 9]
    found = [f"random{seed}/{gpu}/{RANDOM}" for seed in range(5) for gpu in gpus]
    found += [f"random{5 + n}/{gpu}/{tool}" for n, tool in enumerate(TOOLS) for gpu in gpus]
    found += [f"{name}/gfx90a/{tool}" for name in SAMPLES for tool in _tools(name)]
    for seed in seeds():
        if seed.name.startswith("gfx"):
            found += [f"{seed.name}/{seed.target.name}/{tool}" for tool in _tools(seed.name)]
            found += [f"{seed.name}/{gpu.name}/{tool}" for gpu in _kin(seed.target) for tool in ("blocks", "opcodes")]
    return found


def _tools(what: str) -> list[str]:
    """Those that have something to insert there, and not thousands of instructions."""
    return [tool for tool in TOOLS if tool != BANKS or "histogram" in what]


def _kin(gpu: Target) -> list[Target]:
    """Targets with the same instructions: an object of one is one of the other, if it says so."""
    same = lambda other: other.generation in (8, 11) or other.minor == gpu.minor  # noqa: E731
    return [other for other in targets()
            if other.generation != 9 and other.generation == gpu.generation and other is not gpu and same(other)]


@cache
def subject(name: str) -> Subject | None:
    """The subject of a name; None where the tool has nothing to insert there."""
    what, gpu, tool = name.split("/")
    if what.startswith("random"):
        return _random(name, int(what.removeprefix("random")), target(gpu), tool)
    return _compiled(name, what, target(gpu), tool)


def _made(data: bytes, tool: Tool, kernel_name: str) -> Instrumented | None:
    made = instrument(data, tool, kernels=[kernel_name], keep_going=True)
    return made if made.patched.kernels else None


def _tool(name: str) -> Tool:
    tool, options = TOOLS[name]
    return load_tool(tool, options)


def _random(name: str, seed: int, gpu: Target, tool: str) -> Subject | None:
    isa = instruction_set(gpu)
    program = kernel(seed, inline=False, size=2)
    rows = [*_begin(isa), *program.rows[:-_END_ROWS], *_end(isa), *program.rows[-_END_ROWS:]]
    labels: dict[str, int] = {}
    for _ in range(2):  # the second time with all labels known
        code = assemble(isa, rows, 0, labels)
    data = kernel_object(gpu, code)
    made = _made(data, RandomTool(seed, program.probes) if tool == RANDOM else _tool(tool), "k")
    return made and Subject(name, isa, made, "k", _Bench(gpu).run)


_END_ROWS = 2 * len(range(20)) + 2  # of a random kernel: SCC, then each register is moved and stored
_LANE, _SLOT, _VALUE = vgpr(24), vgpr(25), vgpr(26)
_HIDDEN_LDS = 4096  # bytes behind what random kernels use
_DENORMAL, _THIRD, _LANE_BITS = 0x00400123, 0x3EAAAAAB, 63


def _begin(isa: InstructionSet) -> list[Row]:
    """Values that only the end of the kernel looks at: in LDS, and in accumulators where there are some."""
    rows: list[Row] = [
        ("v_and_b32", _LANE, _LANE_BITS, vgpr(0)), ("v_lshlrev_b32", _SLOT, 2, _LANE),
        ("v_add_u32", _SLOT, _HIDDEN_LDS, _SLOT), ("v_mul_u32_u24", _VALUE, 0x9E37, _LANE),
        ("ds_write_b32", _SLOT, _VALUE),
    ]
    if isa.target.has_agprs:
        rows += [("v_accvgpr_write_b32", agpr(index), _VALUE) for index in (0, 1)]
    return rows


def _end(isa: InstructionSet) -> list[Row]:
    """What is hidden, and arithmetic whose results tell how MODE is, goes into registers that are stored."""
    first, second, third = vgpr(2), vgpr(3), vgpr(4)
    rows: list[Row] = [
        ("ds_read_b32", _VALUE, _SLOT), ("s_waitcnt", 0), ("v_xor_b32", first, _VALUE, first),
        ("v_or_b32", _VALUE, _DENORMAL, _LANE), ("v_mul_f32", _VALUE, 0.5, _VALUE),
        ("v_xor_b32", second, _VALUE, second),
        ("v_cvt_f32_u32", _VALUE, _LANE), ("v_mul_f32", _VALUE, _THIRD, _VALUE), ("v_xor_b32", third, _VALUE, third),
    ]
    for index in (0, 1) if isa.target.has_agprs else ():
        rows += [("v_accvgpr_read_b32", TEMPORARY, agpr(index)), ("s_nop", 1), ("v_add_u32", first, TEMPORARY, first)]
    return rows


class _Bench:
    """Mutable: a device, and three buffers that all runs use."""

    def __init__(self, gpu: Target) -> None:
        self.device = EmulatorDevice(gpu, options=LaunchOptions(time_limit=TIME_LIMIT))
        inputs = np.random.default_rng(5).integers(0, 1 << 32, LANES * INPUT_BYTES // 4, dtype=np.uint32).tobytes()
        self.contents = inputs, bytes(4 * PROBES), bytes(LANES * SLOT_BYTES)
        self.buffers = [self.device.alloc(len(content)) for content in self.contents]
        self.arguments = b"".join(buffer.address.to_bytes(8, "little") for buffer in self.buffers)

    def run(self, data: bytes, name: str) -> Memory:
        device = self.device
        for buffer, content in zip(self.buffers, self.contents, strict=True):
            device.write(buffer.address, content)
        module = device.load(data, "damaged")
        try:
            device.launch(module.kernel(name), (1, 1, 1), (LANES, 1, 1), self.arguments.ljust(64, b"\0"))
        finally:
            module.unload()
        return tuple(device.read(buffer.address, buffer.size) for buffer in self.buffers)


def _compiled(name: str, what: str, gpu: Target, tool: str) -> Subject | None:
    """A sample, or a seed of the corpus, which is one for another target."""
    if what.startswith("gfx"):
        seed = next(seed for seed in seeds() if seed.name == what)
        data, own, wave_size = bytearray(seed.data), sample(what.split("-")[1]), seed.wave_size
        data[48] = gpu.elf_mach
    else:
        own, wave_size = sample(what), 64
        data = bytearray(own.path.read_bytes())
    made = _made(bytes(data), _tool(tool), own.kernel)
    run = _launcher(gpu, own) if gpu.generation == 9 else None
    return made and Subject(name, instruction_set(gpu, wave_size), made, own.kernel, run)


def _launcher(gpu: Target, own: Sample) -> Run:
    launch = launch_of(own)

    def run(data: bytes, name: str) -> Memory:
        device = EmulatorDevice(gpu, options=LaunchOptions(time_limit=TIME_LIMIT))
        outputs, _ = run_launch(device, device.load(data, "damaged"), name, launch)
        return tuple(outputs[number].tobytes() for number in sorted(outputs))

    return run


def chosen(rng: random.Random, every: list[str]) -> Subject:
    """One of these that there is."""
    while True:
        found = subject(rng.choice(every))
        if found is not None:
            return found


def unharmed(one: Subject) -> dict[str, Memory]:
    """What the copy's kernels leave when nothing is damaged, by name."""
    assert one.run is not None
    left = {name: one.run(one.made.data, name) for name in (one.kernel, one.clone)}
    assert left[one.kernel] == left[one.clone] == one.run(one.original, one.kernel), one.name
    load(one.made.data)
    return left
