"""``program``, the fixture that builds HIP programs for tests of the worker, for other tests as well."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_worker = Path(__file__).parent / "unit" / "worker" / "conftest.py"
_spec = importlib.util.spec_from_file_location("programs_of_worker", _worker)
assert _spec is not None and _spec.loader is not None
_programs = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _programs
_spec.loader.exec_module(_programs)
program = _programs.program
