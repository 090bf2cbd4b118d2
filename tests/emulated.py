"""Kernels put together from instructions, in an object that loads, links and runs: for tests of whole patches.

In: functions as rows for `synthetic.assemble`. Out: bytes of a code object, and what a launch of one of its kernels
leaves in memory. Kernels get pointers to three buffers in s[4:5] (kernel arguments) and the work-group's number in s6.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from synthetic import ALIGN, Row, assemble

from luthier_py.binary.link import link
from luthier_py.binary.loader import CodeObject, load
from luthier_py.binary.patch import Chunk, NewKernel, Patch
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import Module
from luthier_py.emulator.waves.profile import LaunchProfile
from luthier_py.isa import Target, instruction_set, target
from luthier_py.rewrite.tool import Variable
from luthier_py.samples import sample

ISA = instruction_set(target("gfx90a"))
LANES = 64
KERNARG_BYTES = 280


@cache
def base() -> CodeObject:
    """What new kernels are added to."""
    return load(sample("vector_add").path.read_bytes())


def code_object(
    functions: Mapping[str, Sequence[Row]], kernels: Mapping[str, str] | Sequence[str] = ("k",), sgprs: int = 56,
    vgprs: int = 32, agprs: int = 0, lds_bytes: int = 4 * LANES, scratch_bytes: int = 0, preload: int = 0,
) -> bytes:
    """An object with these functions; ``kernels`` are functions, or kernels with the function that each runs."""
    labels: dict[str, int] = {}
    for _ in range(2):  # the second time with all labels known
        at, chunks = 0, []
        for name, rows in functions.items():
            labels[name] = at
            code = assemble(ISA, rows, at, labels)
            chunks.append(Chunk(name, code))
            at += -(-len(code) // ALIGN) * ALIGN  # chunks are placed one behind the other
    like = base().kernels[0]
    descriptor = like.descriptor.replace(group_segment_fixed_size=lds_bytes, kernarg_preload_length=preload,
                                         private_segment_fixed_size=scratch_bytes)
    if preload:
        descriptor = descriptor.replace(user_sgpr_count=descriptor.user_sgpr_count + preload)
    descriptor = descriptor.with_sgpr_count(ISA.target, sgprs).with_vgpr_count(ISA.target, vgprs + agprs)
    counts = {".sgpr_count": sgprs, ".vgpr_count": vgprs + agprs, ".agpr_count": agprs}
    bodies = kernels if isinstance(kernels, Mapping) else {name: name for name in kernels}
    made = [NewKernel(name, body, descriptor.with_accum_offset(vgprs), like.name, metadata=counts)
            for name, body in bodies.items()]
    return link(base(), Patch(tuple(chunks), tuple(made), ()))


def from_first_entry(data: bytes, kernel: str) -> bytes:
    """The object with a kernel that starts at its first entry, as where firmware does not preload arguments."""
    obj = load(data)
    record = obj.kernel(kernel)
    offset = obj.data.index(record.descriptor.raw)
    return obj.data[:offset] + record.descriptor.replace(kernarg_preload_length=0).raw + obj.data[offset + 64 :]


@dataclass(frozen=True)
class Ran:
    """What a launch left: the buffers, the emulator's counts, and the tool variables."""

    device: EmulatorDevice
    buffers: tuple[bytes, ...]
    profile: LaunchProfile
    module: Module

    def __getitem__(self, variable: Variable) -> object:
        return variable.decode(self.device.read(self.module.variable(variable.name).address, variable.size_bytes))


class Bench:
    """One device, and the buffers that all runs use in turn: ``contents`` is what they hold before each."""

    def __init__(self, *contents: bytes, gpu: Target | None = None) -> None:
        self.device = EmulatorDevice(gpu or ISA.target)
        self.contents = contents
        self.buffers = [self.device.alloc(len(content)) for content in contents]

    def run(
        self, data: bytes, kernel: str, groups: int = 1, loaded: Callable[[Module], object] = lambda module: None
    ) -> Ran:
        """Launch ``groups`` waves; ``loaded`` is told before."""
        device = self.device
        for buffer, content in zip(self.buffers, self.contents, strict=True):
            device.write(buffer.address, content)
        module = device.load(data, kernel)
        loaded(module)
        addresses = [buffer.address for buffer in self.buffers]
        kernarg = struct.pack(f"<{len(addresses)}Q", *addresses).ljust(KERNARG_BYTES, b"\0")
        device.launch(module.kernel(kernel), (groups, 1, 1), (LANES, 1, 1), kernarg)
        assert device.profile is not None
        left = tuple(device.read(buffer.address, buffer.size) for buffer in self.buffers)
        return Ran(device, left, device.profile, module)
