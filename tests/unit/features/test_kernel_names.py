"""By which names a kernel of a file can be asked for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from compiled_samples import OPTIONS

from luthier_py.features.settings.files import symbol_of

KERNELS = """
#define KERNEL __attribute__((global)) void
extern "C" KERNEL plain(int *p) { *p = 1; }
namespace a { template <class T> KERNEL scan(T *p, int n) { *p = n; } }
template KERNEL a::scan<float>(float *, int);
KERNEL twice(int *p) { *p = 2; }
KERNEL twice(float *p) { *p = 2; }
"""


def test_a_kernel_is_called_as_its_author_does(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Where one name stands for several the symbol, or all of the name, says which."""
    (tmp_path / "k.hip").write_text(KERNELS)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", "--offload-arch=gfx90a", "k.hip", "-o", "k.co"],
                   cwd=tmp_path, check=True)
    scan = "_ZN1a4scanIfEEvPT_i"
    asked = {"plain": "plain", "scan": scan, scan: scan, "void a::scan<float>(float*, int)": scan, "twice": "twice",
             "twice(int*)": "_Z5twicePi", "_Z5twicePf": "_Z5twicePf", "not there": "not there"}
    assert {name: symbol_of(tmp_path / "k.co", name) for name in asked} == asked
