"""Which releases of ROCm can be fetched, and which are here."""

from __future__ import annotations

from rich.table import Table

from luthier_py.host.releases.fetched import find_fetched_release
from luthier_py.host.releases.table import RELEASES
from luthier_py.report.plain import Json


def releases_facts() -> Json:
    """``folder``: None where it was not fetched; ``versions``: of its packages that are there."""
    return {"releases": [
        {"name": name, "contents": release.contents, "folder": str(here.root.parent) if here else None,
         "versions": here.versions if here else {}, "missing": [each for each in release.packages
                                                                if here and each not in here.versions]}
        for name, release in RELEASES.items() for here in (find_fetched_release(name),)
    ]}


def releases_table(facts: Json) -> Table:
    """A row for each release; ``facts``: of `releases_facts`."""
    table = Table("release", "what it is", "where", box=None, pad_edge=False)
    for row in facts["releases"]:
        some = f" (without {', '.join(row['missing'])})" if row["missing"] else ""
        table.add_row(row["name"], row["contents"], f"{row['folder']}{some}" if row["folder"] else "not here")
    return table
