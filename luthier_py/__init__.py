"""Luthier-py: instrument AMD GPU code objects with Python.

Everything that a tool or a script needs is importable from here; it is loaded on first use, so that
``import luthier_py`` costs nothing. docs/architecture.md shows the rooms behind these names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from luthier_py.errors import LuthierError as LuthierError
    from luthier_py.isa import EXEC as EXEC, M0 as M0, SCC as SCC, VCC as VCC, OpFlag as OpFlag
    from luthier_py.isa import Reg as Reg, RegFile as RegFile, RegSet as RegSet, sgpr as sgpr, vgpr as vgpr
    from luthier_py.loader import load as load
    from luthier_py.pipeline import Instrumented as Instrumented, instrument as instrument
    from luthier_py.tool import Lane as Lane, LaunchResult as LaunchResult, Mutator as Mutator, Option as Option
    from luthier_py.tool import Tool as Tool, Variable as Variable, WaveVariable as WaveVariable
    from luthier_py.tool import bool_ as bool_, device as device, f32 as f32, f64 as f64, hook as hook
    from luthier_py.tool import i32 as i32, i64 as i64, ptr as ptr, u32 as u32, u64 as u64

_ROOMS = {
    "errors": ("LuthierError",),
    "isa": ("EXEC", "M0", "SCC", "VCC", "OpFlag", "Reg", "RegFile", "RegSet", "sgpr", "vgpr"),
    "loader": ("load",),
    "pipeline": ("Instrumented", "instrument"),
    "tool": (
        "Lane", "LaunchResult", "Mutator", "Option", "Tool", "Variable", "WaveVariable", "bool_", "device", "f32", "f64",
        "hook", "i32", "i64", "ptr", "u32", "u64",
    ),
}
_PLACES = {name: room for room, names in _ROOMS.items() for name in names}

__version__ = "0.1.0"
__all__ = [*sorted(_PLACES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module luthier_py has no attribute {name}")
    value = getattr(import_module(f"luthier_py.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
