"""Options of tools: what is no value of one is refused when the tool is made, and says what would do."""

from __future__ import annotations

from typing import Any

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.rewrite.tool import Mutator, Option, Tool, tools


class Choosing(Tool):
    """Chooses."""

    parts = Option("reads,writes", several=("reads", "writes", "waits"), help="what is counted")
    least = Option(4, bounds=(0, 9))

    def instrument(self, m: Mutator) -> None: ...


@pytest.mark.parametrize("given", ["reads", "waits,reads", "reads,writes,waits"])
def test_some_of_several(given: str) -> None:
    assert Choosing(parts=given).parts == given
    assert Choosing().parts == "reads,writes"


@pytest.mark.parametrize("given", ["", "reads,", "reads, writes", "Reads", "all"])
def test_none_of_several(given: str) -> None:
    with pytest.raises(Invalid, match=f"^option parts={given}: choose some of reads,writes,waits$"):
        Choosing(parts=given)


def test_a_default_is_a_value() -> None:
    with pytest.raises(Invalid, match=r"test_options.py:\d+: the default: option \w*=a,c: choose some of a,b"):
        Option("a,c", several=("a", "b"))
    with pytest.raises(Invalid, match="the default: option =c: choose a or b"):
        Option("c", choices=("a", "b"))
    with pytest.raises(Invalid, match="the default: option =7: give a number from 1 to 5"):
        Option(7, bounds=(1, 5))
    with pytest.raises(Invalid, match="give the least value and the largest one"):
        Option(7, bounds=(1, 5, 9))  # type: ignore[arg-type]


@pytest.mark.parametrize("tool", tools().values(), ids=tools())
def test_numbers_of_tools_have_bounds(tool: type[Tool]) -> None:
    for option in tool.options.values():
        if type(option.default) in (int, float):
            assert option.bounds or option.choices, option.name
            less = min(0, option.bounds[0] if option.bounds else 0) - 1
            wrong: list[Any] = [less, str(less), "many", True]
            for given in wrong:
                with pytest.raises(Invalid, match=f"^option {option.name}={given}: "):
                    tool(**{option.name.lower(): given})
