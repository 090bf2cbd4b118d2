"""The command line: arguments in, one call of a feature, text or JSON out. No logic lives here.

Exit codes: 0 all that was requested was done; 1 an error, or something was not delivered, a line on stderr for each;
2 wrong usage; 3 a tool was requested and observed nothing.
"""

from __future__ import annotations

from luthier_py.cli.app import app
from luthier_py.features.commands.exit_codes import run_to_an_end

__all__ = ["app", "main"]


def main() -> None:
    """Entry point of the `luthier` command."""
    run_to_an_end(app)
