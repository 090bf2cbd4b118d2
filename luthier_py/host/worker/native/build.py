"""The worker's native code as a library, which is made with those that need a worker.

In: the C sources of this folder, and host/hip/control.h, which the program's side has too. Out: a library.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache
from pathlib import Path

from luthier_py.base.c_libraries import link_library
from luthier_py.host.native.build import HOST, build, compile_sources

WORKER_LIBRARY = "libluthier_worker.so"
HERE = Path(__file__).parent
HIP = HOST / "hip"
MOST_KNOWN = 512
"""Launches that native code begins by itself."""


class Pause(IntEnum):
    """Why native code came back."""

    NEW = 0        # the record in hand is like none before
    STOPPED = 1    # the launch in hand was begun, and Python has to continue it
    ELSEWHERE = 2  # the next command is not in the ring
    EMPTY = 3      # nothing came for a while
    CROWDED = 4    # many old tables of allocations are stored for readers


def worker_header() -> str:
    """worker_layout.h."""
    pauses = ", ".join(f"{pause.name} = {pause.value}" for pause in Pause)
    return f"enum pause {{ {pauses} }};\n#define MOST_KNOWN {MOST_KNOWN}\n"


def worker_library() -> Path:
    """The library; raises Unsupported when there is no C compiler."""

    def compile_all(folder: Path) -> None:
        objects = compile_sources(folder, sorted(HERE.glob("*.c")), f"-I{HIP}")
        link_library(folder / WORKER_LIBRARY, objects)

    return build("worker", (), lambda: {"worker_layout.h": worker_header()}, compile_all) / WORKER_LIBRARY


@cache
def load_worker_library() -> ctypes.CDLL:
    """Loaded once, with the types of its functions; raises as `worker_library`."""
    library = ctypes.CDLL(str(worker_library()))
    word, half = ctypes.c_uint64, ctypes.c_uint32
    for name, result, arguments in (
        ("commands_new", word, [word, word, ctypes.c_bool]), ("commands_begin", None, 5 * [word]),
        ("commands_know", None, [word, ctypes.c_char_p, word]), ("commands_forget", None, [word]),
        ("carry_on", ctypes.c_int, [word, ctypes.c_bool]), ("sleep", None, [word, half, word]), ("wake", None, [word]),
        ("add_32", None, [word, half]), ("add_64", None, [word, word]),
        ("watch_files", None, [word, ctypes.c_int32, ctypes.c_char_p]), ("add_file", None, [word, word]),
        ("remove_file", None, [word]), ("take_lost", word, []),
    ):  # fmt: skip
        function = getattr(library, f"luthier_{name}")
        function.restype, function.argtypes = result, arguments
    return library
