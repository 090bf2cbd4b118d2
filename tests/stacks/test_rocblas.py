"""A matrix product of rocBLAS, from Debian's package as it is: its numbers, and the tool's count beside the emulator's.

The rest of what tests/stacks has is for `make test-stacks`; this much of it is fetched in a minute. It is skipped where
the package is not here, in CI, too: Debian's experimental suite may change any day, and none of this project's with it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from luthier_py.host.releases.fetched import VARIABLE, find_fetched_release

HERE = Path(__file__).resolve().parent
RELEASE = "rocm-7.2"


@pytest.fixture
def stacks(monkeypatch):
    """The module that runs programs on releases, which finds those of the user's."""
    monkeypatch.setenv(VARIABLE, os.environ["LUTHIER_FETCHED"])
    monkeypatch.syspath_prepend(str(HERE))
    names = {path.stem for path in HERE.glob("*.py")} - {Path(__file__).stem}  # other folders have modules so called
    for name in names & sys.modules.keys():
        monkeypatch.delitem(sys.modules, name)
    import run

    yield run
    for name in names & sys.modules.keys():
        del sys.modules[name]


@pytest.mark.core
@pytest.mark.parametrize(
    ("stack", "level", "target", "product"),
    [("rocm-7.2", "hsa", "gfx90a", "s NT x1"), ("luthier-7.2", "hip", "gfx942", "f16 NN x1")],  # this by D16 loads
)
def test_rocblas_multiplies_and_is_counted(stacks, stack, level, target, product):
    release = find_fetched_release(RELEASE)
    if release is None or "librocblas5" not in release.versions:
        pytest.skip(f"no rocBLAS: luthier fetch {RELEASE} librocblas5")
    command = [sys.executable, str(HERE / "rocblas_program.py"), str(release.libraries), "--only", f"^{product}"]
    program, device = stacks.Program("rocblas", lambda *_: command), f"emulator:{target}"
    alone = stacks.execute(program, command, stack, device)
    assert not alone.trouble
    assert any("Cijk" in kernel for kernel, _ in alone.launches)  # a kernel of Tensile's
    under = stacks.execute(program, command, stack, device, level)
    assert not under.trouble and not stacks.miscounted(program, level, alone, under)
