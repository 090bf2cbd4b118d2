"""An AMD GPU as a Device, through hip-python; the emulator's HIP runtime library is served by the same code.

In: the calls of emulator.interface.Device. Out: the same through the HIP runtime. Invariant: every error of the runtime
is a DeviceError that names the call. Hidden arguments are the runtime's to fill in.
"""

from __future__ import annotations

import ctypes
from typing import Any

from luthier_py.base.errors import DeviceError, Invalid, Unsupported
from luthier_py.binary.loader import MEMORY, CodeObject, load
from luthier_py.emulator.interface.device import Buffer, Dim3, KernelHandle
from luthier_py.isa import Target, target

_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 3  # HIP_LAUNCH_PARAM_*
_SHARED = 0x40000003  # hipHostMallocPortable, Mapped and Coherent


class HipModule:
    """A loaded code object."""

    def __init__(self, device: HipDevice, code_object: CodeObject) -> None:
        self.device = device
        self.object = code_object
        (self.handle,) = device.call("hipModuleLoadData", code_object.data)
        self._functions: dict[str, Any] = {}

    def kernel(self, name: str) -> KernelHandle:
        """Invalid where the code object has no such kernel; its first launch requests it from the runtime."""
        return KernelHandle(name, self.object.kernel(name), self)

    def variable(self, name: str) -> Buffer:
        """Invalid where the code object defines no such symbol; the size is the runtime's."""
        symbol = self.object.symbol(name)
        if symbol is None or not symbol.defined:
            raise Invalid(f"{self.object.name}: no variable {name}")
        address, size = self.device.call("hipModuleGetGlobal", self.handle, name.encode())
        return Buffer(int(address), int(size))

    def function(self, name: str) -> Any:
        """The hipFunction_t of a kernel, which is looked up once."""
        if name not in self._functions:
            (self._functions[name],) = self.device.call("hipModuleGetFunction", self.handle, name.encode())
        return self._functions[name]

    def unload(self) -> None:
        """Unload the code object (hipModuleUnload); its handles are invalid from then on."""
        self.device.call("hipModuleUnload", self.handle)


class HipDevice:
    """Mutable: the GPU of that number."""

    def __init__(self, index: int = 0) -> None:
        self._hip = _bindings()
        (count,) = self.call("hipGetDeviceCount")
        if not 0 <= index < count:
            raise DeviceError(f"GPU {index} is not there: the HIP runtime sees {count}")
        self.call("hipSetDevice", index)
        (properties,) = self.call("hipGetDeviceProperties", index)
        self._target = target(str(properties.gcnArchName).partition(":")[0])

    @property
    def target(self) -> Target:
        """The GPU's processor, without the settings of its target ID (XNACK, SRAM-ECC)."""
        return self._target

    def call(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        """A function of the runtime: its results without the error code."""
        try:
            answer = getattr(self._hip, name)(*arguments)
        except RuntimeError as failure:  # of hip-python, which opens the library at the first call
            what = "the HIP runtime cannot be used: install ROCm, or take the emulator"
            raise DeviceError(f"{what} ({failure})") from None
        error, *results = answer if isinstance(answer, tuple) else (answer,)
        if int(error) != 0:
            raise DeviceError(f"{name} gave {getattr(error, 'name', error)}")
        return tuple(results)

    def load(self, data: bytes, name: str = MEMORY) -> HipModule:
        """Invalid where the code object is for a target that this GPU does not run."""
        code_object = load(data, name)
        if not self._target.runs(code_object.target):
            raise Invalid(f"{name}: compiled for {code_object.target.name}, but this GPU is a {self._target.name}")
        return HipModule(self, code_object)

    def alloc(self, size: int) -> Buffer:
        """Allocate device memory (hipMalloc), one byte at least; its contents are undefined."""
        (address,) = self.call("hipMalloc", max(size, 1))
        return Buffer(int(address), size)

    def free(self, buffer: Buffer) -> None:
        """Free what `alloc` gave (hipFree), when the device has ended all its work."""
        self.call("hipFree", buffer.address)

    def alloc_shared(self, size: int) -> Buffer:
        """Allocate host memory that is portable, mapped and coherent (hipHostMalloc), and clear it."""
        (address,) = self.call("hipHostMalloc", max(size, 1), _SHARED)
        ctypes.memset(int(address), 0, size)
        return Buffer(int(address), size)

    def free_shared(self, buffer: Buffer) -> None:
        """Free what `alloc_shared` gave (hipHostFree)."""
        self.call("hipHostFree", buffer.address)

    def write(self, address: int, data: bytes) -> None:
        """Copy from the host (hipMemcpy), after the launches before it."""
        self.call("hipMemcpy", address, data, len(data), self._hip.hipMemcpyKind.hipMemcpyHostToDevice)

    def read(self, address: int, size: int) -> bytes:
        """Copy ``size`` bytes to the host (hipMemcpy), after the launches before it."""
        data = bytearray(size)
        self.call("hipMemcpy", data, address, size, self._hip.hipMemcpyKind.hipMemcpyDeviceToHost)
        return bytes(data)

    def synchronize(self) -> None:
        """Wait for all launches (hipDeviceSynchronize); DeviceError where one of them failed."""
        self.call("hipDeviceSynchronize")

    def launch(self, kernel: KernelHandle, grid: Dim3, block: Dim3, kernarg: bytes, lds_bytes: int = 0) -> None:
        """Put the launch on the default stream, and return. Hidden arguments in ``kernarg`` are left out: the runtime
        writes its own. Invalid for a kernel of another device."""
        module = kernel.module
        if not isinstance(module, HipModule) or module.device is not self:
            raise Invalid(f"kernel {kernel.name} is not loaded on this device")
        explicit = max((arg.offset + arg.size for arg in kernel.record.args if not arg.hidden), default=0)
        buffer = ctypes.create_string_buffer(kernarg[:explicit], max(explicit, 1))
        size = ctypes.c_size_t(explicit)
        extra = (ctypes.c_void_p * 5)(
            _BUFFER_POINTER, ctypes.addressof(buffer), _BUFFER_SIZE, ctypes.addressof(size), _END
        )
        function = module.function(kernel.name)
        self.call("hipModuleLaunchKernel", function, *grid, *block, lds_bytes, None, None, ctypes.addressof(extra))


def _bindings() -> Any:
    try:
        from hip import hip
    except ImportError as error:
        raise Unsupported(f"GPUs are used through hip-python: pip install luthier-py[hip] ({error})") from None
    return hip
