"""Target IDs: which device runs which code (AMDGPUUsage, "Target ID", "Generic Processors")."""

from __future__ import annotations

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.isa import Setting, parse_target_id, targets


@pytest.mark.parametrize("device, code, runs", [
    ("gfx90a:sramecc+:xnack-", "gfx90a", True),
    ("gfx90a:sramecc+:xnack-", "gfx90a:xnack-", True),
    ("gfx90a:sramecc+:xnack-", "gfx90a:xnack+", False),
    ("gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-", True),
    ("gfx90a:sramecc+:xnack-", "gfx90a:sramecc-", False),
    ("gfx90a:sramecc+:xnack+", "gfx90a:xnack+", True),
    ("gfx90a:sramecc+:xnack-", "gfx908", False),
    ("gfx90a", "gfx90a:xnack+", True),  # a device of which nobody knows the settings
    ("gfx1100", "gfx1100", True),
    ("gfx1100", "gfx11-generic", True),
    ("gfx1100", "gfx1101", False),
    ("gfx906:sramecc+:xnack-", "gfx9-generic", True),
    ("gfx906:sramecc+:xnack-", "gfx9-generic:xnack-", True),
    ("gfx906:sramecc+:xnack-", "gfx9-generic:xnack+", False),
    ("gfx908:sramecc+:xnack-", "gfx9-generic", False),
    ("gfx942:sramecc+:xnack-", "gfx9-4-generic", True),
    ("gfx90a:sramecc+:xnack-", "gfx9-4-generic", False),
    ("gfx9-generic", "gfx906", False),
])  # fmt: skip
def test_what_runs(device: str, code: str, runs: bool) -> None:
    assert parse_target_id(device).runs(parse_target_id(code)) is runs


@pytest.mark.parametrize("text", [
    "gfx90a:xnack", "gfx90a:", "gfx1100:xnack+", "gfx90a:xnack+:xnack+", "gfx90a:xnack+:xnack-", "gfx90a:other+",
    "gfx90a::xnack+", "", "a", "gfx90a:\x1b[31m+",
])  # fmt: skip
def test_what_is_no_target_id(text: str) -> None:
    with pytest.raises(Invalid) as raised:
        parse_target_id(text)
    assert str(raised.value).isprintable()


def test_all_settings_of_all_targets() -> None:
    """Text and TargetId say the same; a feature that is told matters, one that is not does not; order is free."""
    for row in targets():
        names = [name for name, has in (("sramecc", row.sramecc), ("xnack", row.xnack)) if has]
        plain = parse_target_id(row.name)
        assert str(plain) == row.name and plain.runs(plain)
        for name in names:
            on, off = (parse_target_id(f"{row.name}:{name}{sign}") for sign in "+-")
            assert str(on) == f"{row.name}:{name}+"
            assert (getattr(on, name), getattr(off, name)) == (Setting.ON, Setting.OFF)
            assert on.runs(on) and on.runs(plain) and not on.runs(off) and not off.runs(on)
            assert on.closeness(on) > on.closeness(plain)
        if len(names) == 2:
            assert parse_target_id(f"{row.name}:xnack-:sramecc+") == parse_target_id(f"{row.name}:sramecc+:xnack-")


def test_generic_targets_run_on_their_own_generation_only() -> None:
    for code in (row for row in targets() if row.name.endswith("-generic")):
        devices = [row for row in targets() if row.runs(code) and row is not code]
        assert devices and {row.generation for row in devices} == {code.generation}
        for row in devices:
            own, generic = parse_target_id(row.name), parse_target_id(code.name)
            assert own.closeness(own) > own.closeness(generic)
