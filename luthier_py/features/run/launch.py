"""One launch of one kernel: original or instrumented, on a device.

In: a code object, a launch, arguments as text, perhaps a tool. Out: output buffers, what the tool counted, and a
verdict. Invariant: the original kernel and the instrumented one get the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from luthier_py.base.errors import Invalid, ToolError, how_many
from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass, field, replace
from luthier_py.binary.loader import KernelArg, KernelRecord, load
from luthier_py.emulator import EmulatorDevice, LaunchCycles
from luthier_py.emulator.interface import Buffer as DeviceBuffer
from luthier_py.emulator.interface import Device, Module, pack_arguments
from luthier_py.emulator.interface.arguments import POINTERS
from luthier_py.features.run.receiving import Receiving
from luthier_py.features.run.reported_allocations import Ready, ignore_allocations, own_memory, publish_allocations
from luthier_py.features.run.specs import ArgumentSpec, BufferSpec, ScalarSpec
from luthier_py.report.received import Received, RecordCount
from luthier_py.rewrite.tool import Channel, LaunchParameter, LaunchResult, LaunchVariable, Tool, Variable
from luthier_py.rewrite.tool.arguments.allocations import Allocations, LiveAllocation
from luthier_py.rewrite.tool.arguments.launch_variable import launch_bytes

if TYPE_CHECKING:
    from luthier_py.report.verdict import Verdict
    from luthier_py.rewrite.inject.cloned import ClonedKernel
    from luthier_py.rewrite.pipeline import Instrumented

Dim = tuple[int, int, int]
FLOATING = {
    **dict.fromkeys(("float", "double", "half", "_Float16", "__half"), True),
    **dict.fromkeys(("char", "signed char", "short", "int", "long", "long long"), False),
    **dict.fromkeys(("uchar", "ushort", "uint", "ulong"), False),
    **dict.fromkeys((f"unsigned {kind}" for kind in ("char", "short", "int", "long", "long long")), False),
}
"""Of C's and OpenCL's scalar types, by name."""
Left: TypeAlias = tuple[dict[int, NDArray[Any]], bytes]
"""Of a launch: output buffers, if there are any, by argument number, and the kernarg segment."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What to launch; ``grid`` counts work-groups, ``block`` work-items, ``lds_bytes`` dynamic LDS."""

    kernel: str
    grid: Dim
    block: Dim
    arguments: tuple[ArgumentSpec, ...]
    lds_bytes: int = 0

    def run(self, device: Device, module: Module, kernel: str, ready: Ready = ignore_allocations) -> Left:
        """Make buffers for this launch alone, run it, and read the outputs back (`run_launch`)."""
        return run_launch(device, module, kernel, self, ready)


class Launchable(Protocol):
    """What can be launched, of a kernel or its copy."""

    @property
    def kernel(self) -> str: ...

    @property
    def grid(self) -> Dim: ...

    @property
    def block(self) -> Dim: ...

    def run(self, device: Device, module: Module, kernel: str, ready: Ready = ignore_allocations) -> Left:
        """Run ``kernel`` of ``module``. ``ready`` gets the memory that it may access, before it begins."""
        ...


@dataclass(frozen=True, slots=True)
class Ran:
    """What a launch left: output buffers by argument number, and the tool's report."""

    outputs: dict[int, NDArray[Any]]
    report: Any = None
    text: str = ""
    cloned: ClonedKernel | None = None
    counted: int | None = None  # wave instructions, where the device counts them itself
    inserted: int | None = None  # of these, those of the tool
    result: LaunchResult | None = None  # what the report was made from
    records: Mapping[str, RecordCount] = field(default_factory=dict)  # by channel
    cycles: LaunchCycles | None = None  # with the emulator's cycle model
    arguments: bytes | None = None  # the kernarg segment


@dataclass(frozen=True, slots=True)
class Done:
    """One launch from the command line. ``verdict``: where a tool was requested."""

    file: Path
    ran: Ran
    device: Device
    tool: Tool | None
    verdict: Verdict | None

    @property
    def observed(self) -> bool:
        """Whether the run did what was requested: a tool that was named inserted something that ran."""
        return self.verdict is None or self.verdict.observed

    @property
    def text(self) -> str:
        """What the tool says of the launch, and at the end."""
        if self.tool is None or not self.tool.tells_end:
            return self.ran.text
        ending = self.tool.ending([] if self.ran.result is None else [self.ran.report])
        return "\n".join(filter(None, [self.ran.text, ending]))

    @property
    def found_by_tool(self) -> int:
        """Mistakes that the tool has reported."""
        return 0 if self.verdict is None else self.verdict.findings


def run_original(device: Device, code: bytes, launch: Launchable, name: str = "<memory>") -> Ran:
    """Launch the kernel as it is."""
    module = device.load(code, name)
    try:
        return run_loaded(device, module, launch)
    finally:
        module.unload()


def run_loaded(device: Device, module: Module, launch: Launchable) -> Ran:
    """The same of a code object that is on the device."""
    outputs, arguments = launch.run(device, module, launch.kernel)
    return Ran(outputs, counted=count_instructions(device), cycles=cycles(device), arguments=arguments)


def run_instrumented(device: Device, made: Instrumented, tool: Tool, launch: Launchable, index: int = 0,
                     original: Module | None = None) -> Ran:
    """Launch the clone, or the original where the tool inserted nothing, and ask the tool for its report.
    ``original``: where the copy was made without it."""
    cloned = next((row for row in made.patched.report if row.name == launch.kernel), None)
    if cloned is None:
        ran = (run_original(device, made.data, launch, made.obj.name) if original is None
               else run_loaded(device, original, launch))
        return report_without_code(ran, tool, made, launch, index) if tool.reports_untouched else ran
    channels = [variable for variable in made.edits.variables if isinstance(variable, Channel)]
    parameters = [variable for variable in made.edits.variables if isinstance(variable, LaunchParameter)]
    tables = [variable for variable in made.edits.variables if isinstance(variable, Allocations)]
    variables = [variable for variable in made.edits.variables if variable not in (*channels, *parameters, *tables)]
    sized = launch_bytes(variables, launch.grid, launch.block, cloned.wave_size)
    begun = LaunchResult(index, launch.kernel, launch.grid, launch.block, {}, notes=made.edits.notes,
                         program=lambda: made.program)
    received = Received(tool)
    received.begin(begun)
    if channels or parameters:
        tool.launching(begun)
    module = device.load(made.data, made.obj.name)
    try:
        with (closing(received), Receiving(device, channels, received.take) as receiving,
              places(device, module, sized) as placed, ExitStack() as held):
            receiving.connect(module, channels, index)
            for parameter in parameters:
                place = module.variable(parameter.name)
                device.write(place.address, parameter.encode_value(tool, index)[: place.size])
            known: list[LiveAllocation] = []

            def ready(allocations: Sequence[LiveAllocation]) -> None:
                known.extend([*allocations, *own_memory(module, made, tables)] if original is None else allocations)
                held.enter_context(publish_allocations(device, module, tables, known))

            outputs, arguments = launch.run(device, module, cloned.clone, ready)
            for channel, dropped in receiving.drain_all().items():
                received.count(channel).dropped = dropped
            memory, sizes = {}, {variable.name: size for variable, size in sized.items()}
            for variable in variables:
                place = placed.get(variable) or module.variable(variable.name)
                memory[variable.name] = device.read(place.address, sizes.get(variable.name, place.size))
        if received.failures:  # all records have been taken only now
            raise ToolError(received.failures[0])
        result = replace(begun, memory=memory, arguments=arguments if tool.wants_arguments else None,
                         allocations=tuple(sorted(known)))
        report = tool.report(result)
        return Ran(outputs, report, tool.text(result, report), cloned, count_instructions(device),
                   count_inserted(device, made), result, received.counts, cycles(device))
    finally:
        module.unload()


def report_without_code(ran: Ran, tool: Tool, made: Instrumented, launch: Launchable, index: int) -> Ran:
    """The launch with the tool's report of a launch in which nothing of it ran."""
    if any(refusal.kernel == launch.kernel for refusal in made.refused):
        return ran
    memory = {variable.name: bytes(variable.size_bytes) for variable in made.edits.variables}
    result = LaunchResult(index, launch.kernel, launch.grid, launch.block, memory, notes=made.edits.notes,
                          arguments=ran.arguments if tool.wants_arguments else None, program=lambda: made.program)
    report = tool.report(result)
    return replace(ran, report=report, text=tool.text(result, report), result=result)


@contextmanager
def places(
    device: Device, module: Module, sized: Mapping[LaunchVariable, int]
) -> Iterator[Mapping[Variable, DeviceBuffer]]:
    """Memory of zeros for the next launch, of so many bytes, to which the module's cells lead."""
    found: dict[Variable, DeviceBuffer] = {}
    try:
        for variable, size in sized.items():
            found[variable] = device.alloc(max(1, size))
            device.write(found[variable].address, bytes(size))
            device.write(module.variable(variable.name).address, found[variable].address.to_bytes(8, "little"))
        yield found
    finally:
        for place in found.values():
            device.free(place)


def count_instructions(device: Device) -> int | None:
    """Wave instructions of the last launch, where the device counts them itself."""
    return device.profile.total if isinstance(device, EmulatorDevice) and device.profile else None


def cycles(device: Device) -> LaunchCycles | None:
    """The cycles of the last launch, by the emulator's cycle model."""
    return device.profile.cycles if isinstance(device, EmulatorDevice) and device.profile else None


def count_inserted(device: Device, made: Instrumented) -> int | None:
    """Of these, those that do not stand for one of the program's in a clone."""
    if not isinstance(device, EmulatorDevice) or device.profile is None:
        return None
    obj, found = load(made.data), 0
    for source in made.patched.maps:
        chunk = obj.symbol(source.chunk)
        assert chunk is not None
        own = {chunk.address + offset for offset in source.instructions.values()}
        counts = device.profile.counts.items()
        found += sum(n for pc, n in counts if chunk.address <= pc < chunk.address + chunk.size and pc not in own)
    return found


def run_launch(device: Device, module: Module, kernel: str, launch: Launch, ready: Ready = ignore_allocations) -> Left:
    """Upload, launch, wait, download."""
    handle = module.kernel(kernel)
    check_arguments(handle.record, launch.arguments)
    buffers: dict[int, DeviceBuffer] = {}
    known: list[LiveAllocation] = []
    try:
        values: list[DeviceBuffer | np.generic] = []
        for number, argument in enumerate(launch.arguments):
            if isinstance(argument, BufferSpec):
                buffers[number] = device.alloc(max(1, argument.data.nbytes))
                device.write(buffers[number].address, argument.data.tobytes())
                values.append(buffers[number])
                start, size = buffers[number].address, argument.data.nbytes
                known.append(LiveAllocation(start, start + size, f"argument {number}"))
            else:
                values.append(argument.data)
        ready(known)
        kernarg = pack_arguments(handle.record, values, launch.grid, launch.block, launch.lds_bytes)
        device.launch(handle, launch.grid, launch.block, kernarg, launch.lds_bytes)
        device.synchronize()
        return {
            number: _download(device, buffers[number], argument)
            for number, argument in enumerate(launch.arguments)
            if isinstance(argument, BufferSpec) and argument.is_output
        }, kernarg
    finally:
        for place in buffers.values():
            device.free(place)


def _download(device: Device, place: DeviceBuffer, argument: BufferSpec) -> NDArray[Any]:
    data = np.frombuffer(device.read(place.address, argument.data.nbytes), argument.data.dtype)
    return data.reshape(argument.data.shape)


def doubts(record: KernelRecord, arguments: Sequence[ArgumentSpec]) -> list[str]:
    """Scalars of the right size that are of another kind than the kernel's parameter, as far as its metadata or its
    name say what that is."""
    found: list[str] = []
    if not record.states_arguments:
        return found
    for number, (kind, actual) in enumerate(zip(type_names(record), arguments, strict=True)):
        floating = FLOATING.get(kind.removeprefix("const ").removesuffix(" const"))
        if isinstance(actual, ScalarSpec) and floating is not None and floating != (actual.data.dtype.kind == "f"):
            gets = f"is of type {kind}, and gets the bits of `{actual.text}`"
            found.append(f"kernel {record.shown}: argument {number} {gets}")
    return found


def type_names(record: KernelRecord) -> list[str]:
    """Types of the kernel's parameters, as far as metadata or its name give them; else ""."""
    wanted = record.own_args
    signature = re.fullmatch(r".*?\((.*)\)", demangle(record.name))
    named = [name.strip() for name in signature[1].split(",")] if signature else []
    return [arg.type_name or (named[number] if len(named) == len(wanted) else "") for number, arg in enumerate(wanted)]


def _formal(arg: KernelArg, type_name: str) -> str:
    """``n: 4 bytes``, or the type, where it is known."""
    kind = type_name or ("buffer" if arg.value_kind in POINTERS else f"{arg.size} bytes")
    return f"{arg.name}: {kind}" if arg.name else kind


def check_arguments(record: KernelRecord, arguments: Sequence[ArgumentSpec]) -> None:
    """Number and kind of arguments, against the kernel's metadata, if it has any; raises Invalid."""
    if not record.states_arguments:
        return
    wanted = record.own_args
    if len(wanted) != len(arguments):
        formals = ", ".join(map(_formal, wanted, type_names(record)))
        raise Invalid(f"kernel {record.shown} takes {how_many(len(wanted), 'argument')} ({formals}), not "
                      f"{len(arguments)}")
    for number, (formal, actual) in enumerate(zip(wanted, arguments, strict=True)):
        is_buffer = formal.value_kind in POINTERS
        if is_buffer != (isinstance(actual, BufferSpec) or actual.is_null):
            kind = "a buffer (like in:f32[1024]=zeros, or null)" if is_buffer else "a scalar (like i32=7)"
            raise Invalid(f"kernel {record.shown}: argument {number} is {kind}, not `{actual.text}`")
        if isinstance(actual, ScalarSpec) and actual.data.nbytes != formal.size:
            sizes = f"has {formal.size} bytes, `{actual.text}` has {actual.data.nbytes}"
            raise Invalid(f"kernel {record.shown}: argument {number} {sizes}")
