"""The kernel driver's devices below ROCm's own libraries: a C library for LD_PRELOAD, built when it is first needed."""

from luthier_py.host.kfd.build import device_library

__all__ = ["device_library"]
