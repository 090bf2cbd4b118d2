"""What the environment says of the emulated device is checked before any launch, by `luthier exec` and by workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from loaded_command import run_luthier

from luthier_py.base.errors import Invalid
from luthier_py.host.kfd.driver import DriverService
from luthier_py.host.worker.device.settings import MEMORY_BYTES, parse_memory, parse_profile


def test_profiles(tmp_path: Path) -> None:
    assert parse_profile("") is None
    assert parse_profile(f"{tmp_path}/new") == f"{tmp_path}/new"
    for text, why in ((f"{tmp_path}/none/new", "there is no folder"), (f"{tmp_path}", "is a folder")):
        with pytest.raises(Invalid, match=f"LUTHIER_DEVICE_PROFILE={text}: .*{why}"):
            parse_profile(text)
    assert not list(tmp_path.iterdir())


def test_memory() -> None:
    assert (parse_memory(""), parse_memory("512M"), parse_memory("4096")) == (MEMORY_BYTES, 512 << 20, 4096)
    with pytest.raises(Invalid, match="LUTHIER_DEVICE_MEMORY=`much`"):
        parse_memory("much")


WRONG = {"LUTHIER_DEVICE_PROFILE": "/nonexistent/profile", "LUTHIER_DEVICE_MEMORY": "much", "LUTHIER_TIME_LIMIT": "abc",
         "LUTHIER_CHECK": "some", "LUTHIER_SCHEDULE": "seven"}
WRONG_OF_OURS = {"LUTHIER_MEMORY_GRANULARITY": "5", "LUTHIER_FINE_ATOMICS": "some"}  # of our HIP runtime


@pytest.mark.parametrize(("name", "value"), (WRONG | WRONG_OF_OURS).items())
def test_nothing_is_started(name: str, value: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    done = run_luthier("exec", "--device", "emulator:gfx90a", "--", "touch", started,
                       environment={**os.environ, name: value})
    assert done.returncode == 2 and f"{name}=" in done.stderr and not started.exists()


@pytest.mark.parametrize(("name", "value"), WRONG.items())
def test_a_driver_with_wrong_settings_is_none(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ROCm finds no device then; a queue would fail with the first launch otherwise, and say that code is invalid."""
    monkeypatch.setenv("LUTHIER_DEVICE", "emulator:gfx90a")
    monkeypatch.setenv(name, value)
    with pytest.raises(Invalid, match=f"{name}="):
        DriverService(1)
