"""A code object in device memory.

In: a CodeObject. Out: its segments mapped and relocated, its variables' addresses, and its code for each MODE that a
kernel starts in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from luthier_py.base.errors import DeviceError, Invalid, Malformed, Unsupported
from luthier_py.base.records import replace
from luthier_py.binary.loader import CodeObject, KernelRecord, RelocationKind, SegmentFlag
from luthier_py.emulator.code.code import HostedCode, TextCode
from luthier_py.emulator.interface.device import Buffer, KernelHandle
from luthier_py.emulator.launches.ready import LoadedLaunch
from luthier_py.emulator.memory.device_memory import Allocation, Memory, write_bytes
from luthier_py.emulator.native.clocks import ExecutedInstructions
from luthier_py.emulator.options.settings import Settings
from luthier_py.emulator.reading.text import ObjectText
from luthier_py.isa import Target

KEPT_LAUNCHES = 128
KEPT_BYTES = 1 << 28  # of their work-groups; address space, as far as waves use no more of it
_PAGE = 4096


class EmulatorModule:
    """A loaded code object. ``executed``: on its device; ``find`` gives others there, by their :func:`object_name`.
    ``base``: where its address 0 is to be."""

    def __init__(self, memory: Memory, code_object: CodeObject, executed: ExecutedInstructions,
                 find: Callable[[bytes], CodeObject | None], base: int | None = None) -> None:
        self.memory, self.object = memory, code_object
        loads = [s for s in code_object.segments if s.load]
        if not loads:
            raise Malformed(f"{code_object.name}: nothing to load")
        size = max(s.end for s in loads)
        self.base = memory.reserve(size, _PAGE) if base is None else memory.reserve_at(base, size)
        self.end = self.base + size
        self.loaded = True
        self._text = TextCode(ObjectText(code_object, self.base, find), executed)
        self._ready: dict[tuple[Hashable, ...], LoadedLaunch] = {}
        for segment in loads:
            address = self.base + segment.address
            write_bytes(address, code_object.read(segment.address, segment.file_size))
            if segment.memory_size:
                writable = SegmentFlag.WRITE in segment.flags
                memory.register(Allocation(address, segment.memory_size, f"{code_object.name}", writable))
        for place, data in resolve_relocations(code_object, self.base):
            write_bytes(self.base + place, data)

    def kernel(self, name: str) -> KernelHandle:
        """The kernel, to launch it; Invalid if there is none of that name, Malformed if the loader left it out,
        DeviceError once the module is unloaded."""
        self._check()
        return KernelHandle(name, self.object.kernel(name), self)

    def variable(self, name: str) -> Buffer:
        """Device address and bytes of the variable that the symbol ``name`` defines; Invalid if none does, DeviceError
        once the module is unloaded."""
        self._check()
        symbol = self.object.symbol(name)
        if symbol is None or not symbol.defined:
            raise Invalid(f"{self.object.name}: no variable {name}")
        return Buffer(self.base + symbol.address, symbol.size)

    def settings(self, record: KernelRecord, target: Target) -> Settings:
        """What a kernel's code is translated for on a device, whatever other options are given."""
        on_device = replace(self.object.target_id, target=target)
        return Settings(record.descriptor.wave_size, record.descriptor.mode(target), target,
                        d16_clears=on_device.d16_clears)

    def code(self, settings: Settings) -> HostedCode:
        """The module's code as host functions for ``settings``, one for each of them; nothing is translated yet."""
        return self._text.code(settings)

    def holds_code(self, address: int) -> bool:
        """Whether it is one of this module's executable segments."""
        return self.loaded and any(address - self.base in each for each in self.object.text_ranges)

    def ready(self, key: tuple[Hashable, ...], make: Callable[[], LoadedLaunch]) -> LoadedLaunch:
        """The launch that was made ready under this key before, as long as there are not too many; or a new one."""
        found = self._ready.get(key)
        if found is None:
            held = sum(ready.slot.block.size for ready in self._ready.values())
            if len(self._ready) >= KEPT_LAUNCHES or held > KEPT_BYTES:
                self._forget_ready()
            found = self._ready[key] = make()
        return found

    def _forget_ready(self) -> None:
        for ready in self._ready.values():
            ready.close()
        self._ready.clear()

    def unload(self) -> None:
        """Free its memory and forget its code; kernels and variables of it are no longer usable. DeviceError the second
        time."""
        self._check()
        self._forget_ready()
        self.memory.free(self.base)
        self.loaded = False
        self._text.forget()

    def _check(self) -> None:
        if not self.loaded:
            raise DeviceError(f"{self.object.name} was unloaded")


def resolve_relocations(obj: CodeObject, base: int) -> Iterator[tuple[int, bytes]]:
    """What loading it at ``base`` writes over what its file has, by address in the object."""
    for relocation in obj.relocations:
        symbol, place = relocation.symbol, base + relocation.address
        if symbol is not None and not symbol.defined:
            raise Unsupported(f"{obj.name}: undefined symbol {symbol.name}")
        target = (base + symbol.address if symbol is not None else 0) + relocation.addend
        if relocation.kind is RelocationKind.RELATIVE64:
            value, width = base + relocation.addend, 8
        elif relocation.kind is RelocationKind.ABS64:
            value, width = target, 8
        elif relocation.kind is RelocationKind.REL64:
            value, width = target - place, 8
        elif relocation.kind in (RelocationKind.ABS32, RelocationKind.ABS32_LO):
            value, width = target, 4
        elif relocation.kind is RelocationKind.ABS32_HI:
            value, width = target >> 32, 4
        elif relocation.kind in (RelocationKind.REL32, RelocationKind.REL32_LO):
            value, width = target - place, 4
        elif relocation.kind is RelocationKind.REL32_HI:
            value, width = (target - place) >> 32, 4
        else:
            raise Unsupported(f"{obj.name}: relocation {relocation.kind.name}")
        yield relocation.address, (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
