"""The command that says what works on this computer: doctor."""

from __future__ import annotations

from click.exceptions import Exit

from luthier_py.features.commands.console import aside, show
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.commands.options import AsJson
from luthier_py.features.commands.registry import declare_command


@declare_command()
def doctor(as_json: AsJson = False) -> None:
    """What of compilers, ROCm and GPUs is found on this computer, what works with that, and what to install."""
    from luthier_py.features.doctor.checks import examine
    from luthier_py.features.doctor.report import doctor_tables

    with aside():
        facts = examine()
    show(facts if as_json else doctor_tables(facts), as_json)
    if not facts["healthy"]:
        raise Exit(ExitCode.ERROR)
