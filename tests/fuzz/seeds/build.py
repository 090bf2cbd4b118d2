"""Compile the seeds: sample kernels for other targets than theirs, one of each kind, in all versions of the format.

    python tests/fuzz/seeds/build.py       needs clang-22 (or $CLANG)
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from luthier_py.samples import FOLDER
from luthier_py.samples.build import clang

SEEDS = Path(__file__).resolve().parent
OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()
ROWS = (  # target, its wave size where it has two, sample, version of the format
    ("gfx803", None, "reduce", 4), ("gfx900", None, "function_pointers", 4), ("gfx908", None, "device_call", 5),
    ("gfx942", None, "scratch", 6), ("gfx950", None, "histogram", 6), ("gfx1010", 32, "lds_widths", 5),
    ("gfx1030", 64, "saxpy", 5), ("gfx1100", 32, "function_pointers", 5), ("gfx1201", 32, "reduce", 6),
    ("gfx1250", 32, "vector_add", 6),
)


def main() -> None:
    for gpu, wave_size, source, version in ROWS:
        size = [] if wave_size is None else [f"-m{'' if wave_size == 64 else 'no-'}wavefrontsize64"]
        subprocess.run([clang(), *OPTIONS, f"--offload-arch={gpu}", f"-mcode-object-version={version}", *size,
                        f"{source}.hip", "-o", str(SEEDS / f"{gpu}-{source}.co")], cwd=FOLDER, check=True)


if __name__ == "__main__":
    main()
