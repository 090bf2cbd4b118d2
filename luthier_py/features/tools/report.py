"""Installed tools and their options, as data and as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from luthier_py.report.plain import Json
from luthier_py.rewrite.tool import EVERY_TOOL, Option, Tool, declared_numbers


def toolbox_facts(tools: Mapping[str, type[Tool]]) -> Json:
    """JSON-ready: tools in the order of their names, each with its options and with the numbers that its reports
    declare; then the options of every tool."""
    return {
        "tools": [
            {
                "name": name,
                "aliases": list(tool.aliases),
                "description": tool.description(),
                "options": _options(tool.options),
                "numbers": [{"name": name, "of_several": adding, "what": what}
                            for name, adding, what in declared_numbers(tool.amounts or {})],
            }
            for name, tool in sorted(tools.items())
        ],
        "every_tool": _options(EVERY_TOOL),
    }


def _options(options: Mapping[str, Option[Any]]) -> Json:
    return {
        o.name: {
            "default": o.default, "shown": Option.show(o.default), "expects": o.describe_values(),
            "choices": list(o.choices), "environment": o.env, "help": o.help,
        }
        for o in options.values()
    }  # fmt: skip


def toolbox_text(facts: Json) -> Group:
    """What is there, in the terminal's width."""
    lines: list[Text] = []
    width = max(len(name) for owner in (*facts["tools"], {"options": facts["every_tool"]}) for name in owner["options"])
    for tool in facts["tools"]:
        also = f" (also {', '.join(tool['aliases'])})" if tool["aliases"] else ""
        lines += [Text(f"{tool['name']}{also}: {tool['description']}"), *_lines(tool["options"], width)]
        lines += [Text(f"  {row['name']}: {row['what'] or 'a number'} ({row['of_several']})")
                  for row in tool["numbers"] if len(facts["tools"]) == 1]
        lines.append(Text())
    lines += [Text("every tool:"), *_lines(facts["every_tool"], width), Text()]
    lines.append(Text("Give options as -O NAME=VALUE. Those in capitals are environment variables, too."))
    return Group(*lines)


def _lines(options: Json, width: int) -> Iterator[Text]:
    for name, option in options.items():
        default = f" [{option['shown']}]" if option["shown"] else ""
        takes = f"{option['expects']}; " if option["choices"] else ""
        yield Text(f"  {name:<{width}}  {takes}{option['help']}{default}")
