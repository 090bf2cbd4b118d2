"""Random kernels on the emulator: they end or fail as a kernel does, and a tool's count is right where they end.

And damaged code objects, which may hold any kernel with any descriptor: launched as they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from fuzzer import Case, Fuzzer
from object_mutations import damaged_kernel, like
from random_code import AGPRS, BUFFER_BYTES, LDS_BYTES, SCRATCH_BYTES, SGPRS, VGPRS, random_kernel

from luthier_py.base.errors import DeviceError, LuthierError
from luthier_py.binary.link import Chunk, NewKernel, Patch, link
from luthier_py.binary.loader import CodeObject, load
from luthier_py.emulator import EmulatorDevice, LaunchOptions
from luthier_py.emulator.interface import Module
from luthier_py.emulator.waves.profile import LaunchProfile
from luthier_py.isa import Target, instruction_set, target
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

TARGETS = ("gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950")
# What instr_count may count, and the emulator's own figure, for a wave with so many work-items.
COUNTS: dict[str, tuple[dict[str, str], Callable[[LaunchProfile, int], int]]] = {
    "blocks": ({}, lambda profile, items: profile.total),
    "instructions": ({"mode": "instruction"}, lambda profile, items: profile.total),
    "active": ({"EXCLUDE_PRED_OFF": "1"}, lambda profile, items: profile.total_active),
    "lanes": ({"COUNT_WARP_LEVEL": "0", "EXCLUDE_PRED_OFF": "1"}, lambda profile, items: profile.total_lanes),
    "threads": ({"COUNT_WARP_LEVEL": "0"}, lambda profile, items: profile.total * items),
}
LANES, ARGUMENTS = 64, 8
DAMAGED = "damaged"
ITEMS = (LANES, LANES, LANES, 1, 33, 3 * LANES)  # of the work-group
NOP = (0xBF800000).to_bytes(4, "little")
TIME_LIMIT = 2.0  # a kernel that does not end: how long is waited changes nothing else
# What shows the time, where the code is or which wave this is: instrumented copies may differ.
TELLING = ("S_MEMTIME", "S_MEMREALTIME", "S_GET_SHADER_CYCLES_U64", "S_GETPC_B64", "S_GETREG_B32", "S_CALL_B64",
           "S_SWAPPC_B64")


@cache
def _base(gpu: str) -> CodeObject:
    """A code object of that target that kernels can be added to: a sample that says it is for it."""
    data = bytearray(sample("vector_add").path.read_bytes())
    data[48] = target(gpu).elf_mach
    return load(bytes(data))


def kernel_object(gpu: Target, code: bytes) -> bytes:
    base = _base(gpu.name)
    like = base.kernels[0]
    total = VGPRS + AGPRS if gpu.unified_agprs else VGPRS
    descriptor = like.descriptor.replace(
        group_segment_fixed_size=LDS_BYTES, private_segment_fixed_size=SCRATCH_BYTES, kernarg_size=64)
    descriptor = descriptor.with_vgpr_count(gpu, total).with_sgpr_count(gpu, SGPRS + gpu.extra_sgprs)
    if gpu.unified_agprs:
        descriptor = descriptor.with_accum_offset(VGPRS)
    counts = {".sgpr_count": SGPRS, ".vgpr_count": total, ".agpr_count": AGPRS if gpu.has_agprs else 0}
    kernel = NewKernel("k", "k", descriptor, like.name, metadata=counts)
    return link(base, Patch((Chunk("k", code),), (kernel,), ()))


def _make(rng: random.Random) -> Case:
    if rng.random() < 0.25:
        return Case(damaged_kernel(rng, TARGETS), DAMAGED)
    gpu = target(rng.choice(TARGETS))
    how = f"{rng.choice(list(COUNTS))}-{rng.choice(ITEMS)}"
    return Case(kernel_object(gpu, random_kernel(instruction_set(gpu), rng)), how)


class _Bench:
    """A device and a buffer: at the same address for both launches, since it can end up in what is stored."""

    def __init__(self, gpu: Target) -> None:
        self.device = EmulatorDevice(gpu, options=LaunchOptions(time_limit=TIME_LIMIT))
        self.buffer = self.device.alloc(BUFFER_BYTES)

    def launch(self, data: bytes, kernel: str, items: int) -> tuple[bytes, LaunchProfile, Module]:
        """What is in the buffer then. All arguments are its address."""
        device, address = self.device, self.buffer.address
        device.write(address, random.Random(1).randbytes(BUFFER_BYTES))
        module = device.load(data, "random")
        device.launch(module.kernel(kernel), (1, 1, 1), (items, 1, 1), address.to_bytes(8, "little") * ARGUMENTS)
        assert device.profile is not None
        return device.read(address, BUFFER_BYTES), device.profile, module


def _trial(case: Case, folder: Path) -> None:
    if case.how == DAMAGED:
        obj = load(case.data)
        bench = _Bench(obj.target)
        for kernel in obj.kernels:
            bench.launch(case.data, kernel.name, LANES)
    else:
        _trial_of_random(case)


def _trial_of_random(case: Case) -> None:
    what, _, number = case.how.partition("-")
    options, figure = COUNTS[what]
    items = int(number)
    bench = _Bench(load(case.data).target)
    left, profile, _ = bench.launch(case.data, "k", items)
    tool = load_tool("instr_count", options)
    made = instrument(case.data, tool, kernels=["k"])
    if items > LANES or any(inst.op.base in TELLING for inst in profile.insts.values()):
        return  # waves that race for memory need not do the same again
    try:
        again, _, module = bench.launch(made.data, "k.luthier", items)
    except DeviceError as error:
        raise AssertionError(f"the copy fails: {error}") from error
    variable = tool.instructions
    count = variable.decode(bench.device.read(module.variable(variable.name).address, variable.size_bytes))
    assert count == figure(profile, items), f"the tool counts {count}, the emulator {figure(profile, items)}"
    differing = [at for at in range(0, BUFFER_BYTES, 4) if left[at : at + 4] != again[at : at + 4]]
    assert not differing, f"memory differs at {len(differing)} places, the first 0x{differing[0]:x}"


def _prepare(folder: Path) -> None:
    """What the emulator always needs is compiled before trials are forked."""
    for gpu, what in zip(TARGETS, [*COUNTS, "blocks"], strict=True):
        isa = instruction_set(target(gpu))
        try:
            _trial(Case(kernel_object(isa.target, random_kernel(isa, random.Random(0))), f"{what}-{LANES}"), folder)
        except LuthierError:  # a trial will say what is wrong with it
            continue


def _idle(data: bytes) -> bytes:
    """The kernel with s_nop for all but its end; of a damaged object, the seed."""
    try:
        obj = load(data)
        if obj.symbol("k") is None:
            return like(data)
    except LuthierError:
        return like(data)
    symbol, entry = obj.symbol("k"), obj.kernel("k").entry
    assert symbol is not None
    (text,) = (s for s in obj.segments if s.load and s.address <= entry < s.end)
    start = text.offset + symbol.address - text.address
    return data[:start] + NOP * (symbol.size // 4 - 1) + data[start + symbol.size - 4 :]


FUZZER = Fuzzer("kernels", _make, _trial, _prepare, _idle, divisible=False)
