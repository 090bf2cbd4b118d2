"""What a hook's author may have meant by a name that device code does not know.

In: a name, the names around the function. Out: the part of a refusal that says what would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from luthier_py.base.errors import closest, did_you_mean
from luthier_py.rewrite.jit.python.mathematics import NAMES
from luthier_py.rewrite.tool.hooks.hook import Device
from luthier_py.rewrite.tool.hooks.intrinsic import Intrinsic, intrinsics
from luthier_py.rewrite.tool.hooks.types import Pointer, Scalar

_OF_NUMPY = {"arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
             "arctan2": "atan2", "arctanh": "atanh", "power": "pow", "absolute": "fabs"}  # fmt: skip
PLAIN = ("abs", "max", "min", "print")


def callable_names() -> str:
    """What device code may call."""
    mathematical = " ".join(f"math.{name}" for name in NAMES)
    return (f"allowed are types, @device functions, min, max, abs, print, {mathematical} and the intrinsics "
            f"{' '.join(sorted(intrinsics()))}")


def suggest_call(name: str, around: Mapping[str, Any]) -> str:
    """``; did you mean popcount?``, with where it is imported from if it is not; empty if nothing is like it."""
    here = {*PLAIN, *(key for key, value in around.items() if isinstance(value, (Device, Intrinsic, Scalar, Pointer)))}
    known = intrinsics()
    if name in known:
        return f"; import it from {' or '.join(known[name])}"
    found = closest(name, {*here, *known})
    if found is None:
        return ""
    return f"; did you mean {found}?" + ("" if found in here else f" Import it from {' or '.join(known[found])}")


def suggest_math_function(name: str) -> str:
    """The same for a function of NumPy or another library that has math's name."""
    own = _OF_NUMPY.get(name, name)
    return f"; did you mean math.{own}?" if own in NAMES else ""


def suggest_value(name: str, around: Mapping[str, Any], own: Iterable[str]) -> str:
    """The same for a value: a local, a parameter, or a number of the module."""
    numbers = (key for key, value in around.items() if isinstance(value, (int, float)))
    return did_you_mean(name, {*own, *numbers})
