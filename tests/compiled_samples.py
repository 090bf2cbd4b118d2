"""The sample kernels compiled for other targets, at any level of optimisation.

In: a compiler and a folder. Out: code objects, made once each; RuntimeError has the compiler's words.
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

    def path(self, name: str, target: str, wave_size: int, level: int = 2, *more: str) -> Path:
        """Of the code object of a sample. ``more``: options of the compiler."""
        out = self.folder / f"{name}-{target}-{wave_size}-O{level}{''.join(more)}.co"
        if not out.exists():
            size = ["-mwavefrontsize64"] * (wave_size == 64 and target.startswith("gfx1"))
            done = subprocess.run([self.clang, *OPTIONS, f"-O{level}", f"--offload-arch={target}", *size, *more,
                                   FOLDER / f"{name}.hip", "-o", out], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr)
        return out

    def code(self, name: str, target: str, wave_size: int, level: int = 2, *more: str) -> bytes:
        return self.path(name, target, wave_size, level, *more).read_bytes()
