"""hiprtc: kernels that a program has as text, compiled by a worker. C sources for libhiprtc and libamdhip64."""

from __future__ import annotations

from pathlib import Path

from luthier_py.host.hiprtc.protocol import header

__all__ = ["BUILTIN_HEADER", "HIPRTC_SOURCES", "VERSION_SCRIPT", "header"]
HERE = Path(__file__).parent
HIPRTC_SOURCES = tuple(sorted(HERE.glob("*.c")))
BUILTIN_HEADER = HERE / "hiprtc_runtime.h"
"""What every program includes without saying so."""
VERSION_SCRIPT = "{ global: hiprtc*; local: *; };\n"
"""ROCm's names in libhiprtc have no versions (clr, hiprtc.map.in)."""
