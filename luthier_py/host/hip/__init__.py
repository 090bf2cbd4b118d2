"""A HIP runtime on the emulator: a C library with the real one's ABI, built when it is first needed."""

from luthier_py.host.hip.build import ABI, ABI_MAJORS, HERE, headers, runtime_folder

__all__ = ["ABI", "ABI_MAJORS", "HERE", "headers", "runtime_folder"]
