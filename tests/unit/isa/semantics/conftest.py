"""How code of single instructions is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from luthier_py.base.llvm import Effort
from luthier_py.emulator.code import engine


@pytest.fixture(scope="module")
def compiled_fast() -> Iterator[None]:
    """Support functions of matrices are compiled fast, which takes LLVM a third of the time: what they compute is
    looked at. As launches compile them they are in tests/reference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_ready", {})
        patch.setattr(engine, "Effort", SimpleNamespace(OPTIMISE=Effort.FAST))
        yield
