"""Installed tools and their options, as data and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from luthier_py.tool import Tool

Facts = list[dict[str, Any]]


def toolbox_facts(tools: Mapping[str, type[Tool]]) -> Facts:
    return [
        {
            "name": name,
            "description": tool.description(),
            "options": {
                o.name: {"default": o.default, "expects": o.expected(), "environment": o.env, "help": o.help}
                for o in tool.options.values()
            },
        }
        for name, tool in sorted(tools.items())
    ]


def toolbox_table(facts: Facts) -> Table:
    table = Table("tool", "what it does", "options", box=None, pad_edge=False)
    for tool in facts:
        options = "\n".join(f"{n}={o['default']}  ({o['expects']}) {o['help']}" for n, o in tool["options"].items())
        table.add_row(tool["name"], tool["description"], options)
    return table
