"""An option has one meaning, whichever tools have it."""

from __future__ import annotations

from luthier_py.rewrite.tool import Option, tools

SAID_OTHERWISE = {"per_launch"}
"""Of a kernel's launches one by one or together; what is counted or listed for them each tool says in its words."""
COMMON = {"line", "lines", "count", "most"}
"""Words of filters and of reports, which would mean something else in each tool."""


def test_one_name_is_one_option() -> None:
    meanings: dict[str, set[str]] = {}
    for kind in tools().values():
        for name, option in own_options(kind).items():
            meanings.setdefault(name, set()).add(option.help)
    assert len(meanings) > 25 and {"line_bytes", "print_records"} <= meanings.keys()
    assert {name: said for name, said in meanings.items() if len(said) > 1 and name not in SAID_OTHERWISE} == {}
    assert not COMMON & meanings.keys()


def own_options(kind: type) -> dict[str, Option]:
    """By attribute, with those of its base classes."""
    return {name: value for base in kind.__mro__ for name, value in vars(base).items()
            if isinstance(value, Option) and base.__module__.startswith("luthier_py.tools")}
