"""Stand-ins for ROCm's profilers, which Debian does not have and frameworks are linked with, built at first use.

In: names that JAX's and CuPy's wheels ask for (nm -D, November 2026). Out: a folder of libraries, for the end of a
program's search path. Invariant: every function says that it failed, with status 1, or with words where it gives some,
and does nothing: profiling is off, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from luthier_py.base.c_libraries import link_library
from luthier_py.host.native.build import build, compile_sources

_ROCPROFILER = """
assign_callback_thread configure_buffer_tracing_service configure_callback_tracing_service context_is_valid
create_buffer create_callback_thread create_context destroy_buffer flush_buffer force_configure get_status_name
get_status_string get_thread_id get_timestamp get_version iterate_callback_tracing_kind_operations
iterate_callback_tracing_kinds query_available_agents query_buffer_tracing_kind_name
query_buffer_tracing_kind_operation_name query_callback_tracing_kind_name query_callback_tracing_kind_operation_name
start_context stop_context
""".split()
_LIBRARIES = {
    "librocprofiler-sdk.so.1": ("rocprofiler", [f"rocprofiler_{name}" for name in _ROCPROFILER], "{ global: *; };"),
    "libroctracer64.so.4": ("roctracer", ["roctracer_start", "roctracer_stop"], "ROCTRACER_4.0 { global: *; };"),
}
"""By soname: a name, its functions, and a version script."""
_IN_WORDS = {"rocprofiler_get_status_name", "rocprofiler_get_status_string"}
_WORDS = "no profiler is here"


def absent_libraries() -> Path:
    """The folder."""
    return build("absent", (), lambda: dict(_texts()), _compile)


def _texts() -> Iterator[tuple[str, str]]:
    for name, functions, versions in _LIBRARIES.values():
        yield f"{name}.c", "".join(map(_function, functions))
        yield f"{name}.map", f"{versions}\n"


def _function(name: str) -> str:
    kind, value = ("const char *", f'"{_WORDS}"') if name in _IN_WORDS else ("long ", "1")
    shown = '__attribute__((visibility("default"))) '
    return f"{shown}{kind}{name}(void);\n{kind}{name}(void) {{ return {value}; }}\n"


def _compile(folder: Path) -> None:
    for soname, (name, _, _) in _LIBRARIES.items():
        objects = compile_sources(folder, [folder / f"{name}.c"])
        link_library(folder / soname, objects, f"-Wl,-soname,{soname}", f"-Wl,--version-script={folder / name}.map")
