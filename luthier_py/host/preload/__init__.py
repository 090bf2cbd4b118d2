"""A tool under a HIP program, at the level of HIP: a C library for LD_PRELOAD."""

from luthier_py.host.preload.build import TOOL_LIBRARY, tool_library

__all__ = ["TOOL_LIBRARY", "tool_library"]
