"""Devices: what all of them can do, and how arguments reach a kernel."""

from luthier_py.runtime.arguments import hidden_value, pack_arguments
from luthier_py.runtime.device import Buffer, Device, Dim3, KernelHandle, Module

__all__ = ["Buffer", "Device", "Dim3", "KernelHandle", "Module", "hidden_value", "pack_arguments"]
