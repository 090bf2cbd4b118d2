"""Devices: what all of them can do, and how arguments reach a kernel."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.emulator.interface.arguments import compute_hidden_argument, pack_arguments
    from luthier_py.emulator.interface.device import Buffer, Device, Dim3, KernelHandle, Module

__all__ = ["Buffer", "Device", "Dim3", "KernelHandle", "Module", "compute_hidden_argument", "pack_arguments"]
__getattr__ = make_lazy_loader(__name__, {
    "arguments": "compute_hidden_argument pack_arguments",
    "device": "Buffer Device Dim3 KernelHandle Module",
})  # fmt: skip
