"""Marks that programs leave for tools (ROCm's roctx): a stand-in for the libraries that take them. C sources."""

from __future__ import annotations

from pathlib import Path

ROCTX_SOURCES = (Path(__file__).parent / "roctx.c",)
_NAMES = "global: roctx*; local: *;"
ROCTX_LIBRARIES = {"libroctx64.so.4": f"ROCTX_4.1 {{ {_NAMES} }};\n",
                   "librocprofiler-sdk-roctx.so.1": f"{{ {_NAMES} }};\n"}  # fmt: skip
"""Version scripts by soname: programs ask the older one for its names with their version (roctracer's roctx.h)."""
ROCTX_LINKS = {"libroctx64.so": "libroctx64.so.4", "librocprofiler-sdk-roctx.so": "librocprofiler-sdk-roctx.so.1",
               "librocprofiler-sdk-roctx.so.0": "librocprofiler-sdk-roctx.so.1"}  # fmt: skip
"""Other names of these files; .so.0 is of ROCm 6."""
