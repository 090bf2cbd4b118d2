"""A tool below every program that uses ROCr, through any library: C sources and how they are built."""

from luthier_py.host.hsa.build import HSA_TOOL_LIBRARY, hsa_tool_library

__all__ = ["HSA_TOOL_LIBRARY", "hsa_tool_library"]
