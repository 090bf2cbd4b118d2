"""What was found on a computer and what works there, as tables. The facts come from `doctor/checks`."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from luthier_py.report.plain import Json


def doctor_tables(facts: Json) -> Group:
    """What was found, and what works with it; ``facts``: of `session.doctor.examine`."""
    found = Table("found", "version", "where", title=facts["system"], title_justify="left")
    for part in facts["found"]:
        where = part["where"] or ("-" if not part["version"] else "")
        found.add_row(Text(part["name"]), Text(part["version"]), Text(where, overflow="fold"))
    checks = Table("", "state", "why, or what to install")
    for check in facts["checks"]:
        checks.add_row(Text(check["what"]), Text(check["state"]), Text(check["advice"], overflow="fold"))
    return Group(found, checks)
