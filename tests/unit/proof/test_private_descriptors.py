"""What a clone's descriptor and metadata may say of private memory: the tool's lies behind the application's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import MOST_STACK_BYTES
from luthier_py.proof.descriptors import _private

OWN = 64


def record(size: int, *, grows: bool = False, told: bool = False) -> Any:
    """``grows``: so its descriptor has it; ``told``: so its metadata have it."""
    descriptor = SimpleNamespace(private_segment_fixed_size=size, uses_dynamic_stack=int(grows))
    metadata = {".private_segment_fixed_size": size, **({".uses_dynamic_stack": True} if told else {})}
    return SimpleNamespace(name="k", descriptor=descriptor, metadata=metadata)


@pytest.mark.parametrize("stack", [{}, {"grows": True}, {"told": True}])
def test_the_tool_s_begins_behind_the_largest_stack(stack: dict[str, bool]) -> None:
    first = OWN + MOST_STACK_BYTES * bool(stack)
    fields = _private(record(OWN, **stack), record(first + 16), range(first, first + 16))
    assert fields == {"private_segment_fixed_size": first + 16, "enable_private_segment": 1, "uses_dynamic_stack": 0}
    with pytest.raises(CheckFailed, match="may be the application's"):
        _private(record(OWN, **stack), record(first + 12), range(first - 4, first + 12))


def test_a_clone_s_stack_has_one_size() -> None:
    with pytest.raises(CheckFailed, match="may be the application's"):
        _private(record(OWN), record(OWN + 16, told=True), range(OWN, OWN + 16))
    with pytest.raises(CheckFailed, match="may be the application's"):
        _private(record(OWN), record(OWN + 20), range(OWN, OWN + 16))


def test_where_a_tool_has_none_nothing_changes() -> None:
    assert _private(record(OWN), record(OWN), range(0)) == {}
    with pytest.raises(CheckFailed, match="in the metadata of its clone is another one"):
        _private(record(OWN), record(OWN + 4), range(0))
