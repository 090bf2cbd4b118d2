"""ROCm's own user-space stack, as Debian has it, for programs among the tests: where its parts are.

In: LUTHIER_ROCM_STACK, a folder in which its packages are unpacked; .ci/run says which. Out: environments, paths.
Invariant: a program in such an environment finds this ROCm and no other, and below it the emulator.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

VARIABLE = "LUTHIER_ROCM_STACK"
CODE_OBJECT = 4  # version; this ROCm, 5.2, loads none above: a kernel of version 5 is hipErrorInvalidDeviceFunction
ABI = 5          # of libamdhip64.so


@dataclass(frozen=True, slots=True)
class RocmStack:
    """``root``: what holds usr."""

    root: Path

    @property
    def libraries(self) -> Path:
        return self.root / "usr" / "lib" / "x86_64-linux-gnu"

    @property
    def headers(self) -> Path:
        return self.root / "usr" / "include"

    @property
    def device_libraries(self) -> Path:
        """ocml.bc and the others."""
        return self.libraries / "amdgcn" / "bitcode"

    def search(self, *folders: str | Path) -> dict[str, str]:
        """What `luthier exec --stack rocm` needs: where libraries are, ``folders`` first."""
        return {"LD_LIBRARY_PATH": os.pathsep.join(map(str, (*folders, self.libraries)))}

    def environment(self, device: str = "emulator:gfx90a", *folders: str | Path) -> dict[str, str]:
        """For a program that runs without `luthier exec`."""
        from luthier_py.host.kfd import device_library

        return {"LUTHIER_DEVICE": device, "LD_PRELOAD": str(device_library()), **self.search(*folders)}


def find_stack() -> RocmStack | None:
    folder = os.environ.get(VARIABLE)
    found = RocmStack(Path(folder)) if folder else None
    return found if found and (found.libraries / f"libamdhip64.so.{ABI}").exists() else None


def lacking(words: str) -> NoReturn:
    """Skips the test, or fails it where LUTHIER_REQUIRE_TOOLS=1 says that everything is installed."""
    (pytest.fail if os.environ.get("LUTHIER_REQUIRE_TOOLS") == "1" else pytest.skip)(words)
