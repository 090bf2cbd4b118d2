"""What `luthier exec --stack` puts below a program, seen by a program that prints its environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE

from luthier_py.base.errors import Invalid, Unsupported
from luthier_py.features.exec import execute
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.features.settings.stack import choose_stack, stack_environment, what_is_missing
from luthier_py.host.worker import watchdog

DEVICE = "emulator:gfx90a"
FOUND = {"LD_LIBRARY_PATH": "/somewhere/lib", "ROCM_PATH": "/somewhere"}


def seen(*arguments: str, **environment: str) -> dict[str, str]:
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", "exec", *arguments, "--", "env"]
    settings = {**os.environ, "LUTHIER_DEVICE": "", "LUTHIER_STACK": "", **FOUND, **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=settings)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


@pytest.mark.parametrize("how", ("option", "variable"))
def test_rocm_stays_where_the_program_finds_it(how: str, require_tool: Callable[[str], str]) -> None:
    require_tool("cc")
    if how == "option":
        found = seen("--stack", "rocm", "--device", DEVICE, LD_PRELOAD="libm.so.6")
    else:
        found = seen(LUTHIER_STACK="rocm", LUTHIER_DEVICE=DEVICE, LD_PRELOAD="libm.so.6")
    assert found["LUTHIER_DEVICE"] == DEVICE
    assert {name: found[name] for name in FOUND} == FOUND
    library, others = found["LD_PRELOAD"].split()
    assert library.endswith("/libluthier_kfd.so") and os.path.exists(library) and others == "libm.so.6"


def test_our_runtime_comes_first(require_tool: Callable[[str], str]) -> None:
    require_tool("cc")
    found = seen("--device", DEVICE)
    folder, rest = found["LD_LIBRARY_PATH"].split(":")
    assert os.path.exists(f"{folder}/libamdhip64.so.5") and rest == FOUND["LD_LIBRARY_PATH"]
    assert found["ROCM_PATH"] == folder and "LD_PRELOAD" not in found


def test_without_a_device_nothing_changes() -> None:
    found = seen("--stack", "rocm")
    assert {name: found[name] for name in FOUND} == FOUND and "LD_PRELOAD" not in found


def test_a_stack_that_is_unknown() -> None:
    with pytest.raises(Invalid, match="stack cuda is unknown; give one of luthier, rocm, .*rocm-7.2, .*, by --stack"):
        choose_stack("cuda")


def test_where_rocm_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is another one for the moment: there is no such machine to test on."""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(Unsupported, match="this is Linux on aarch64; use --stack luthier"):
        stack_environment("rocm")


def test_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where a program failed, and no library of ROCm's is to be found."""
    empty, full = (tmp_path_factory.mktemp(name) for name in ("empty", "full"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(empty))
    monkeypatch.setenv("ROCM_PATH", str(empty))
    monkeypatch.setattr("luthier_py.features.settings.stack.find_library", lambda name: None)  # of the system
    assert "apt install libamdhip64-5" in (what_is_missing("rocm", DEVICE) or "")
    assert "`--device emulator:TARGET`" in (what_is_missing("rocm", None) or "")
    assert what_is_missing("luthier", DEVICE) is None
    for name in ("libhsa-runtime64.so.1", "libamdhip64.so.5"):
        (full / name).touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{empty}:{full}")
    assert what_is_missing("rocm", DEVICE) is None and what_is_missing("rocm", None) is None


def test_nothing_is_missing_where_a_worker_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that failed for another reason has found its libraries itself."""
    monkeypatch.setattr(execute, "what_is_missing", lambda *of: "libraries")
    monkeypatch.setattr(execute, "obstacles", lambda *of: ())
    for unserved, hints in ((True, ("libraries",)), (False, ())):
        assert execute._hints(Path("a"), RunSettings(DEVICE, "rocm"), 1, unserved) == hints
    folder, lock = watchdog.new_folder()
    try:
        monkeypatch.setenv(watchdog.FOLDER, str(folder))
        assert not watchdog.was_served(folder)
        watchdog.ProgramWatch(os.getpid())
        assert watchdog.was_served(folder)
    finally:
        shutil.rmtree(folder)  # before the lock goes: else the watch ends us
        os.close(lock)


@pytest.mark.parametrize(("variable", "chosen"), [
    ("DEBUG_HIP_MEM_POOL_VMHEAP", "0"), ("HIP_VMEM_MANAGE_SUPPORT", "0"), ("HSA_ENABLE_IPC_MODE_LEGACY", "1")])
def test_newer_releases_do_without_a_newer_driver(variable: str, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """HIP 7.2's pools, and HIP as a whole, without virtual memory management, and memory of several processes without
    DMA-BUFs; unless somebody asks for them."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("luthier_py.host.kfd.device_library", lambda: "library")
    for given, wanted in ((None, chosen), ("2", "2")):
        monkeypatch.delenv(variable, raising=False)
        if given is not None:
            monkeypatch.setenv(variable, given)
        assert stack_environment("rocm")[variable] == wanted
