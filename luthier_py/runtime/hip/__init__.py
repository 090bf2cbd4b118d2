"""A HIP runtime on the emulator: a C library with the real one's ABI, built when it is first needed."""

from luthier_py.runtime.hip.build import ABI_MAJORS, runtime_folder, tool_library

__all__ = ["ABI_MAJORS", "runtime_folder", "tool_library"]
