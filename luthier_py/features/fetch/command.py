"""The command that fetches a release of ROCm."""

from __future__ import annotations

from typing import Annotated

from luthier_py.features.commands.console import show
from luthier_py.features.commands.options import AsJson
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command
from luthier_py.host.worker.error_boundary import say


@declare_command()
def fetch(
    release: Annotated[str | None, ByPlace(help="rocm-7.2, for example; without it: which there are")] = None,
    packages: Annotated[
        list[str] | None, ByPlace(help="of Debian, instead of all libraries of the release", metavar="[PACKAGE]...")
    ] = None,
    mirror: Annotated[
        str | None, ByName("--mirror", metavar="URL", help="of Debian; else the one that this machine's apt uses")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a release of ROCm into a folder, for `exec --stack rocm-7.2`; nothing is installed.

    For example: luthier fetch rocm-7.2

    Packages come from Debian, by apt-get, and need no rights. LUTHIER_RELEASES names another folder to keep them in.
    """
    from luthier_py.features.fetch.report import releases_facts, releases_table
    from luthier_py.host.releases.apt import Wanted
    from luthier_py.host.releases.fetched import fetch_release
    from luthier_py.host.releases.table import release_called

    if release is not None:
        chosen = release_called(release)
        names = (*chosen.runtime, *packages) if packages else chosen.packages
        found = fetch_release(chosen, Wanted(chosen.suites, names, mirror), say)
        say(f"{release} is in {found.root.parent}: luthier exec --device emulator:TARGET --stack {release} -- PROGRAM")
    facts = releases_facts()
    if release is None or as_json:
        show(facts if as_json else releases_table(facts), as_json)
