"""The sample kernels compiled for other targets, at any level of optimisation.

In: a compiler and a folder. Out: code objects, made once each.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from luthier_py.samples import FOLDER

OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -fuse-cuid=none".split()


class CompiledSamples:
    """Mutable: what was compiled so far."""

    def __init__(self, clang: str, folder: Path) -> None:
        self.clang, self.folder = clang, folder

    def path(self, name: str, target: str, wave_size: int, level: int = 2) -> Path:
        """Of the code object of a sample."""
        out = self.folder / f"{name}-{target}-{wave_size}-O{level}.co"
        if not out.exists():
            size = ["-mwavefrontsize64"] * (wave_size == 64 and target.startswith("gfx1"))
            subprocess.run([self.clang, *OPTIONS, f"-O{level}", f"--offload-arch={target}", *size,
                            FOLDER / f"{name}.hip", "-o", out], check=True)
        return out

    def code(self, name: str, target: str, wave_size: int, level: int = 2) -> bytes:
        return self.path(name, target, wave_size, level).read_bytes()
