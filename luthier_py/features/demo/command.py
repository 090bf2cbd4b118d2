"""The command that shows all of it on samples: demo."""

from __future__ import annotations

from click.exceptions import Exit

from luthier_py.features.commands.console import show
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.commands.options import AsJson
from luthier_py.features.commands.registry import declare_command


@declare_command()
def demo(as_json: AsJson = False) -> None:
    """Instrument and run the sample kernels, and compare every count and every output."""
    from rich.console import Console

    from luthier_py.features.demo.report import demo_table
    from luthier_py.features.demo.samples import demonstrate

    rows = demonstrate(lambda text: None if as_json else Console(stderr=True).print(text, highlight=False))
    show(rows.facts() if as_json else demo_table(rows), as_json)
    if not rows.passed:
        raise Exit(ExitCode.ERROR)
