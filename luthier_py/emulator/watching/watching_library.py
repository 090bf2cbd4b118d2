"""The native code that watches launches under checks, built at first use (folder watching).

In: its sources, and a header of layout's places and of the numbers that Python and C share. Out: a library. Invariant:
the header is made of the enums themselves; what stands twice besides (a finding's columns, spaces) is in watching.h.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from luthier_py.base.c_libraries import build, compile_sources, link_library
from luthier_py.emulator.instructions.routes import RelativeBits
from luthier_py.emulator.instructions.steps import (
    CONSTANT,
    LDS_COUNTER,
    LOGIC_COLUMNS,
    PLACE,
    RELATIVE,
    ROLE,
    ROUTED,
    Column,
    RegisterRole,
    Step,
    StepFlag,
)
from luthier_py.emulator.memory.touched import PAGE_BYTES
from luthier_py.emulator.options.checks import (
    ACCESS_KINDS,
    BLOCK_FREE,
    BLOCK_LEFT,
    READ_ONLY,
    AccessTrait,
    AccessUse,
    Checks,
    Divergence,
    FindingKind,
    Race,
    UndefinedUse,
)
from luthier_py.emulator.records.layout import (
    FINE,
    GROUP,
    ROUTED_SHADOWS,
    WAVE,
    WAVE_HEADER_BYTES,
    WORKER,
    WRITABLE,
    WRITTEN_LANES,
)
from luthier_py.isa.model.registers import EXEC, M0, SCC, TTMP0
from luthier_py.isa.properties.float_results import FloatFormat

_SOURCES = Path(__file__).parent
_LIBRARY = "libwatching.so"
PAGE = PAGE_BYTES
MOST_PAGES = 1 << 13
"""Of memory whose accesses are recorded, to find races."""
MOST_BYTES = 1 << 20
"""Dwords whose bytes have notes of their own."""


def _header() -> str:
    values = {
        **{f"WAVE_{name.upper()}": place for name, place in WAVE.items()},
        **{f"WORKER_{name.upper()}": place for name, place in WORKER.items()},
        **{f"GROUP_{name.upper()}": place for name, place in GROUP.items()},
        **{f"CHECK_{check.name}": check.value for check in Checks},
        **{f"FOUND_{kind.name}": int(kind) for kind in FindingKind},
        **{f"RACE_{race.name}": int(race) for race in Race},
        **{use.name: int(use) for use in AccessUse},
        **{str(trait.name): trait.value for trait in AccessTrait},
        **{kind.upper(): number for number, kind in enumerate(ACCESS_KINDS)},
        **{f"BARRIER_{kind.name}": int(kind) for kind in Divergence},
        **{f"DECIDES_{use.name}": int(use) for use in UndefinedUse},
        **{f"STEP_{step.name}": int(step) for step in Step},
        **{str(flag.name): flag.value for flag in StepFlag},
        **{f"STEP_{column.name}": int(column) for column in Column},
        **{f"ROLE_{role.name}": int(role) for role in RegisterRole},
        **{f"OF_{kind.name}": number + 1 for number, kind in enumerate(FloatFormat)},
        **{f"RELATIVE_{bits.name}": int(bits) for bits in RelativeBits},
        "LOGIC_COLUMNS": LOGIC_COLUMNS, "CONSTANT": CONSTANT, "LDS_COUNTER": LDS_COUNTER,
        "PLACE": PLACE, "ROLE": ROLE, "RELATIVE": RELATIVE, "ROUTED": ROUTED,
        "ROWS": WAVE_HEADER_BYTES, "ROUTED_SHADOWS": ROUTED_SHADOWS, "WRITTEN_LANES": WRITTEN_LANES, "M0_ID": M0,
        "SCC_ID": SCC, "EXEC_LO": EXEC, "FIRST_TRAP_SCALAR": TTMP0, "MOST_PAGES": MOST_PAGES,
        "MOST_BYTES": MOST_BYTES, "PAGE": PAGE, "READ_ONLY": READ_ONLY,
        "BLOCK_FREE": BLOCK_FREE, "BLOCK_LEFT": BLOCK_LEFT,
        "WRITABLE": WRITABLE, "FINE": FINE,
    }  # fmt: skip
    return "".join(f"#define {name} {value}\n" for name, value in values.items())


def source_texts() -> dict[str, str]:
    """The sources and headers that the library is made of, by file name."""
    return {path.name: path.read_text() for path in sorted(_SOURCES.glob("*.[ch]"))} | {"watching_layout.h": _header()}


@cache
def load_watching_library() -> ctypes.CDLL:
    """The library, loaded once; the first call on a computer compiles it. Unsupported without a C compiler,
    LuthierError where it fails."""
    texts = source_texts()
    sources = [name for name in texts if name.endswith(".c")]

    def compile_all(folder: Path) -> None:
        link_library(folder / _LIBRARY, compile_sources(folder, [folder / name for name in sources]))

    folder = build("watching", texts.values(), lambda: texts, compile_all)
    library = ctypes.CDLL(str(folder / _LIBRARY))
    library.luthier_watch_new.argtypes = [ctypes.c_uint64] * 8
    library.luthier_watch_new.restype = ctypes.c_uint64
    library.luthier_watch_stopped.restype = ctypes.c_uint64
    for name in ("free", "stopped"):
        getattr(library, f"luthier_watch_{name}").argtypes = [ctypes.c_uint64]
    for name in ("findings", "touched"):
        rows = getattr(library, f"luthier_watch_{name}")
        rows.argtypes, rows.restype = [ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)], ctypes.c_uint64
    return library


@cache
def resolve_watching_functions() -> dict[str, int]:
    """Addresses of what generated code calls."""
    found = {}
    for name in ("step", "access", "elements", "scalar", "cast", "lane", "denormals"):
        address = ctypes.cast(getattr(load_watching_library(), f"luthier_watch_{name}"), ctypes.c_void_p).value
        assert address is not None
        found[f"luthier_watch_{name}"] = address
    return found
