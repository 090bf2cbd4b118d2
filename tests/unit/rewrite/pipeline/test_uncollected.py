"""Searches for garbage rest while a copy is made, and go on as they were, whatever happens."""

from __future__ import annotations

import gc

import pytest

from luthier_py.rewrite.pipeline import suspend_garbage_collection


@pytest.mark.parametrize("before", [True, False])
def test_as_it_was(before: bool) -> None:
    was = gc.isenabled()
    (gc.enable if before else gc.disable)()
    try:
        with pytest.raises(KeyError), suspend_garbage_collection(), suspend_garbage_collection():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is before
    finally:
        (gc.enable if was else gc.disable)()
