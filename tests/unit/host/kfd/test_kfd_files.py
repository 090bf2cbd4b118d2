"""What stands for sysfs alone, below our HIP runtime: files of the devices, and no driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from luthier_py.features.settings.stack import SYSFS, topology_environment
from luthier_py.host.kfd import device_library
from luthier_py.isa import target

LOOK = """
import json, os
nodes = "/sys/class/kfd/kfd/topology/nodes"
found = {name: open(f"{nodes}/{name}/properties").read() for name in sorted(os.listdir(nodes))}
there = [os.path.exists(path) for path in ("/dev/kfd", "/sys/module/amdgpu/version")]
print(json.dumps([found, *there, os.listdir("/sys/class/drm")]))
"""


@pytest.fixture
def look(require_tool: Callable[[str], str]) -> Callable[..., list[object]]:
    require_tool("cc")

    def run(**environment: str) -> list[object]:
        settings = {**os.environ, "LD_PRELOAD": str(device_library()), **environment}
        done = subprocess.run([sys.executable, "-c", LOOK], env=settings, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return list(json.loads(done.stdout))

    return run


def test_devices_are_shown(look: Callable[..., list[object]]) -> None:
    """By what `exec` sets; nothing answers for /dev/kfd, and no worker is started for it."""
    given = topology_environment("luthier-7.2", [target("gfx90a"), target("gfx1100")], 1 << 30)
    nodes, driver, module, cards = look(**given, LUTHIER_DEVICE="emulator:gfx90a,emulator:gfx1100")
    assert isinstance(nodes, dict) and list(nodes) == ["0", "1", "2"] and cards and module
    assert "gfx_target_version 90010" in nodes["1"] and "gfx_target_version 110000" in nodes["2"]
    assert driver == Path("/dev/kfd").exists()


@pytest.mark.parametrize(("stack", "name"), [("luthier", "gfx90a"), ("luthier-7.2", "gfx803"), ("rocm-7.2", "gfx90a")])
def test_where_nothing_is_shown(stack: str, name: str) -> None:
    """A program of ours needs none, gfx8's card is not known, and ROCm's stack has the driver."""
    assert SYSFS not in topology_environment(stack, [target(name)], 1 << 30)
