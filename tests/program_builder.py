"""``builder``: the module tests/programs/build.py, which compiles test programs and also runs as a program itself."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location("programs_build", Path(__file__).parent / "programs" / "build.py")
assert _spec is not None and _spec.loader is not None
builder = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = builder
_spec.loader.exec_module(builder)
