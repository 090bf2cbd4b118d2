"""What any test may use: samples, and tools that are not Python packages.

Invariant: a tool that is missing skips the test on a developer's machine and fails it where LUTHIER_REQUIRE_TOOLS=1
says that everything is installed, so that nothing goes untested unseen.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from left_behind import nothing_left_behind
from rocm_stack import VARIABLE, RocmStack, find_stack, lacking

# What tests start is to hear signals that a shell or nohup keeps from what runs in the background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

__all__ = ["nothing_left_behind"]  # a fixture of every test
pytest_plugins = ["suite.plugin"]
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # whatever the load
settings.load_profile("suite")

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"luthier_py.samples": "tests/data", "luthier_py.tools": "tools", "luthier_py.intrinsics": "intrinsics"}
LIBRARIES = {"comgr": "libamd_comgr.so.2"}


def import_mapped(name: str, folder: Path) -> None:
    """Make ``folder`` importable as ``name``, as an installation does, where only the checkout is on the path."""
    init = folder / "__init__.py"
    if importlib.util.find_spec(name) is not None or not init.exists():
        return
    spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


for mapped_name, mapped_folder in FOLDERS.items():
    import_mapped(mapped_name, ROOT / mapped_folder)

os.environ.setdefault("LUTHIER_FETCHED", os.environ.get("LUTHIER_RELEASES", ""))  # for tests of a real one
os.environ["LUTHIER_RELEASES"] = "/nonexistent"  # what a user has fetched changes no other test
os.environ["LUTHIER_MAKING_TOLD"] = "1"  # what programs print does not depend on who compiled the libraries
from luthier_py.samples import SAMPLES, Sample  # noqa: E402  (importable only now)


def find_tool(name: str) -> str | None:
    """The path of a program, or the loadable name of a library in LIBRARIES."""
    if name not in LIBRARIES:
        return shutil.which(name)
    try:
        ctypes.CDLL(LIBRARIES[name])
    except OSError:
        return None
    return LIBRARIES[name]


def require_tool(name: str) -> str:
    """``find_tool(name)``; without it the test is skipped, or fails under LUTHIER_REQUIRE_TOOLS=1."""
    return find_tool(name) or lacking(f"{name} is not installed")


@pytest.fixture(name="require_tool", scope="session")
def require_tool_fixture() -> Callable[[str], str]:
    """For tests: ``def test_x(require_tool): objdump = require_tool("llvm-objdump-22")``."""
    return require_tool


@pytest.fixture
def clang(require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The compiler of hooks in C++: for a whole file ``pytestmark = pytest.mark.usefixtures("clang")``."""
    compiler = require_tool("clang++-22")
    monkeypatch.setenv("LUTHIER_CLANG", compiler)
    return compiler


@pytest.fixture(scope="session")
def rocm_stack() -> RocmStack:
    """ROCm's own libraries, to run programs on them with `--stack rocm`."""
    return find_stack() or lacking(f"no ROCm: unpack Debian's packages as .ci/run does, and set {VARIABLE}")


@pytest.fixture(params=SAMPLES, ids=lambda sample: sample.name)
def sample(request: pytest.FixtureRequest) -> Sample:
    """Every sample kernel in turn."""
    found: Sample = request.param
    return found
