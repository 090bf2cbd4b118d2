"""A launch with all that it needs to be run again alone: its code, its arguments, the memory that it came to.

In: a launch that has ended on a device, readied so that what it touched is known. Out: a RecordedLaunch, plain data.
Invariant: of a page those bytes are saved that are in allocations which the launch touched there; what the device puts
beside each launch by itself (arguments, packet, queue) is not memory of the record. Pages of the code object are:
programs write constants, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from luthier_py.base.errors import Location, Unsupported
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import KernelRecord
from luthier_py.emulator.devices.emulator_device import EmulatorDevice
from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.interface.device import Dim3, KernelHandle
from luthier_py.emulator.launches.ready import LoadedLaunch
from luthier_py.emulator.memory.device_memory import Allocation, read_bytes
from luthier_py.emulator.memory.touched import PAGE_BYTES, TouchedPage

HOSTCALLS = "hidden_hostcall_buffer"


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """``before``, ``after``: the launch. Bytes of no allocation are 0."""

    address: int
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """``kernarg``: the segment, hidden arguments too. ``base``: where address 0 of ``code`` was. ``allocations``: those
    that pages are in, but those of ``code``; they and ``pages`` ascend. ``instructions``: that waves executed."""

    target: str
    code: bytes
    base: int
    kernel: str
    grid: Dim3
    block: Dim3
    lds_bytes: int
    kernarg: bytes
    instructions: int
    allocations: tuple[Allocation, ...]
    pages: tuple[RecordedPage, ...]


def record_launch(device: EmulatorDevice, kernel: KernelHandle, grid: Dim3, block: Dim3, kernarg: bytes,
                  lds_bytes: int = 0) -> RecordedLaunch:
    """Launch it, and keep it."""
    ready = device.ready(kernel, grid, block, len(kernarg), lds_bytes, touched=True)
    device.run(ready, kernarg)
    return capture_launch(device, kernel, ready)


def capture_launch(device: EmulatorDevice, kernel: KernelHandle, ready: LoadedLaunch) -> RecordedLaunch:
    """The last launch of a device that counts, as soon as it has ended; Unsupported where it was not alone."""
    module, touched, profile = kernel.module, device.touched, device.profile
    assert isinstance(module, EmulatorModule) and touched is not None and profile is not None
    if ready.shape.edges:
        raise Unsupported("its last work-groups are not whole, and a record has none such", Location(kernel.name))
    if touched.elsewhere:
        raise Unsupported("it ran code of another code object, and a record has one", Location(kernel.name))
    places = ready.places
    own = {places.kernarg, places.packet, places.queue}
    found: dict[int, Allocation] = {}
    pages = []
    for page in touched.pages:
        held = [each for each in device.memory.between(page.address, page.address + PAGE_BYTES)
                if each.address not in own and page.touches(each.address, each.end)]
        if held:
            pages.append(_page(page, held))
            found.update({each.address: each for each in held if not _inside(module, each)})
    launch = RecordedLaunch(
        target=device.target.name, code=module.object.data, base=module.base, kernel=kernel.name,
        grid=ready.shape.grid, block=ready.shape.block, kernarg=ready.arguments, instructions=profile.total,
        lds_bytes=ready.shape.lds_bytes - kernel.record.descriptor.group_segment_fixed_size,
        allocations=tuple(found.values()), pages=tuple(pages))
    if _calls_host(launch, kernel.record):
        raise Unsupported("it called the host (printf or an assertion), whom a replay has not", Location(kernel.name))
    return launch


def _calls_host(launch: RecordedLaunch, kernel: KernelRecord) -> bool:
    """Whether it wrote to the buffer through which device code calls the host."""
    for arg in kernel.args:
        if arg.value_kind == HOSTCALLS:
            address = int.from_bytes(launch.kernarg[arg.offset : arg.offset + arg.size], "little")
            buffers = [each for each in launch.allocations if each.address <= address < each.end]
            written = [page.address for page in launch.pages if page.before != page.after]
            return any(each.address < page + PAGE_BYTES and page < each.end for each in buffers for page in written)
    return False


def _inside(module: EmulatorModule, allocation: Allocation) -> bool:
    return module.base <= allocation.address < module.end


def _page(page: TouchedPage, held: Sequence[Allocation]) -> RecordedPage:
    before = _only(held, page.address, page.before)
    after = _only(held, page.address, read_bytes(page.address, PAGE_BYTES)) if page.written else before
    return RecordedPage(page.address, before, after)


def _only(held: Iterable[Allocation], start: int, data: bytes) -> bytes:
    kept = bytearray(len(data))
    for each in held:
        inside = slice(max(each.address - start, 0), max(min(each.end - start, len(data)), 0))
        kept[inside] = data[inside]
    return bytes(kept)
