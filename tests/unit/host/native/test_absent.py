"""Stand-ins for libraries that frameworks are linked with: every function fails, and says so where it has words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from luthier_py.host.absent import absent_libraries


def test_each_function_fails(require_tool: Callable[[str], str]) -> None:
    require_tool("cc")
    profiler = ctypes.CDLL(str(absent_libraries() / "librocprofiler-sdk.so.1"))
    assert profiler.rocprofiler_start_context() == profiler.rocprofiler_query_available_agents() == 1
    profiler.rocprofiler_get_status_string.restype = ctypes.c_char_p
    assert profiler.rocprofiler_get_status_string(1) == b"no profiler is here"
    assert ctypes.CDLL(str(absent_libraries() / "libroctracer64.so.4")).roctracer_start() == 1
