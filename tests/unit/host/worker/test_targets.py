"""Devices that users hide from HIP programs: as ROCm does it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rocm_stack import RocmStack

from luthier_py.base.errors import Invalid
from luthier_py.features.run.launched import parse_emulator_target
from luthier_py.host.worker.device.properties import device_uuid
from luthier_py.host.worker.device.targets import parse_targets, visible_devices

ROCR, HIP, CUDA = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
CASES: list[tuple[dict[str, str], list[int]]] = [
    ({}, [0, 1, 2]),
    ({HIP: "1"}, [1]),
    ({HIP: "2,0"}, [2, 0]),
    ({HIP: "1,7,0"}, [1]),
    ({HIP: "-1"}, []),
    ({HIP: "0,-1,1"}, [0]),
    ({HIP: "1,1,2"}, [1, 2]),
    ({HIP: "1, 2"}, [1]),
    ({HIP: "01"}, []),
    ({HIP: "x"}, []),
    ({HIP: "1,,2"}, [1]),
    ({HIP: ""}, [0, 1, 2]),
    ({CUDA: ""}, [0, 1, 2]),
    ({CUDA: "2"}, [2]),
    ({CUDA: "2", HIP: "1"}, [1]),
    ({CUDA: "2", HIP: ""}, [2]),
    ({ROCR: "2,1"}, [2, 1]),
    ({ROCR: " 1, 2"}, [1, 2]),
    ({ROCR: "01"}, [1]),
    ({ROCR: "1,9,0"}, [1]),
    ({ROCR: "1,1,2"}, [1]),
    ({ROCR: "-1"}, []),
    ({ROCR: "x"}, []),
    ({ROCR: ""}, []),
    ({ROCR: "2,1", HIP: "1"}, [1]),
    ({ROCR: "2,1", HIP: "2"}, []),
    ({ROCR: "2,1", CUDA: "0"}, [2]),
]


@pytest.mark.parametrize(("environment", "wanted"), CASES)
def test_visible_devices(environment: dict[str, str], wanted: list[int]) -> None:
    assert visible_devices([device_uuid(number) for number in range(3)], environment) == wanted


def test_rocr_takes_uuids() -> None:
    uuids = [device_uuid(number) for number in range(3)]
    assert visible_devices(uuids, {ROCR: f"GPU-{uuids[2]},0"}) == [2, 0]


def test_a_device_is_the_same_wherever_it_is_asked_for(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """By its place among visible devices, on a bus, and by its UUID."""
    require_tool("cc")
    source, program = tmp_path / "seen.c", tmp_path / "seen"
    source.write_text(r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int n)
{
    void *hip = dlopen("libamdhip64.so", RTLD_NOW);
    int (*bus)(char *, int, int) = dlsym(hip, "hipDeviceGetPCIBusId");
    int (*from)(int *, const char *) = dlsym(hip, "hipDeviceGetByPCIBusId");
    int (*uuid)(char *, int) = dlsym(hip, "hipDeviceGetUuid");
    for (int i = 0; i < 2; i++) {
        int back;
        char id[64], name[17] = {0};
        if (bus(id, sizeof id, i) || uuid(name, i) || from(&back, id))
            return 2;
        printf("%s %s %d\n", id, name, back);
    }
    return from(&n, "0000:04:00.0") == 1;
}
""")
    subprocess.run(["cc", source, "-o", program, "-ldl"], check=True)
    command = [sys.executable, "-m", "luthier_py", "exec", "--device", "emulator:gfx90a*3", "--", str(program)]
    done = subprocess.run(command, env={**os.environ, HIP: "2,0"}, capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"0000:05:00.0 {device_uuid(2)} 0", f"0000:03:00.0 {device_uuid(0)} 1"]
    assert done.returncode == 1  # hipErrorInvalidValue: that device is hidden


@pytest.mark.slow
def test_rocm_agrees(rocm_stack: RocmStack, tmp_path: Path) -> None:
    """The same lists on ROCm 5.2.3: its devices by their bus numbers, which are 3, 4, 5 there."""
    source, program = tmp_path / "seen.c", tmp_path / "seen"
    source.write_text(
        "#include <stdio.h>\n#include <dlfcn.h>\nint main(void) { void *hip = dlopen(\"libamdhip64.so.5\", RTLD_NOW);\n"
        "int (*count)(int *) = dlsym(hip, \"hipGetDeviceCount\"), n = 0;\n"
        "int (*bus)(char *, int, int) = dlsym(hip, \"hipDeviceGetPCIBusId\"); count(&n); char id[64];\n"
        "for (int i = 0; i < n; i++) { bus(id, 64, i); puts(id); } return 0; }\n"
    )
    subprocess.run(["cc", source, "-o", program, "-ldl"], check=True)
    for environment, wanted in CASES:
        settings = {**os.environ, **rocm_stack.environment("emulator:gfx90a*3"), **environment}
        done = subprocess.run([program], env=settings, capture_output=True, text=True, timeout=600)
        assert [int(line.split(":")[1], 16) - 3 for line in done.stdout.splitlines()] == wanted, environment


def test_features_as_the_device_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HSA_XNACK", raising=False)
    run = parse_emulator_target("emulator:gfx90a:sramecc+:xnack-")
    assert run is not None and run.name == "gfx90a"
    asked = "emulator:gfx90a:sramecc+:xnack-*2,emulator:gfx1100"
    assert [each.name for each in parse_targets(asked)] == ["gfx90a", "gfx90a", "gfx1100"]
    with pytest.raises(Invalid, match="emulator:gfx90a, which is gfx90a:sramecc.:xnack- now"):
        parse_targets("emulator:gfx90a:xnack+")
    with pytest.raises(Invalid, match="'xnack-' is no feature of gfx1100"):
        parse_targets("emulator:gfx1100:xnack-")
    monkeypatch.setenv("HSA_XNACK", "1")
    assert [each.name for each in parse_targets("emulator:gfx90a:xnack+")] == ["gfx90a"]
