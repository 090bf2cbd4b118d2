"""The command that lists tools."""

from __future__ import annotations

from typing import Annotated

from luthier_py.features.commands.console import aside, show
from luthier_py.features.commands.options import AsJson
from luthier_py.features.commands.parameters import ByPlace
from luthier_py.features.commands.registry import declare_command


@declare_command()
def tools(
    tool: Annotated[str | None, ByPlace(help="only this one, or those of a file or folder")] = None,
    as_json: AsJson = False,
) -> None:
    """Installed tools and their options, or those of a .py file or a folder."""
    from luthier_py.features.tools.report import toolbox_facts, toolbox_text
    from luthier_py.rewrite.tool import tools as installed
    from luthier_py.rewrite.tool.discover import tools_in

    with aside():
        facts = toolbox_facts(tools_in(tool) if tool else installed())
    show(facts if as_json else toolbox_text(facts), as_json)
