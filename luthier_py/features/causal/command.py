"""The command that asks what faster code would be worth: causal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from luthier_py.features.commands.console import aside, progress
from luthier_py.features.commands.options import AsJson, DeviceOption, TimeLimitGiven
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command


@declare_command()
def causal(
    files: Annotated[list[Path], ByPlace(help="recorded launches", metavar="FILE...")],
    kind: Annotated[
        str, ByName("--by", metavar="line|block|loop|function", help="what may be faster, one after the other")
    ] = "line",
    tests: Annotated[
        list[str] | None, ByName("--test", metavar="FILTER", help="this code may be faster; may be given several times")
    ] = None,
    speedups: Annotated[
        str, ByName("--speedups", metavar="25,50,75", help="by how many percent it is tried")
    ] = "25,50,75",
    most: Annotated[
        int, ByName("--most", type=click.IntRange(min=1), metavar="N", help="how many are tried, by cycles issued")
    ] = 20,
    method: Annotated[
        str, ByName("--method", metavar="model|delays", help="model: its costs are others, on the emulator; delays: "
                    "other code is slower, on any device")
    ] = "",
    repeats: Annotated[
        int, ByName("--repeats", type=click.IntRange(min=1), metavar="N", help="runs of each with delays; for a GPU")
    ] = 1,
    output: Annotated[
        Path, ByName("-o", "--output", metavar="FOLDER", help="tables and pages")
    ] = Path("causal"),
    device: DeviceOption = "emulator",
    *,
    limit: TimeLimitGiven,
    as_json: AsJson = False,
) -> None:
    """If this line of a recorded launch's kernel were faster, how much faster would the kernel be?

    For example: luthier causal recorded/00000-saxpy.lrec --speedups 50,100
    """
    from luthier_py.features.causal.campaign import CausalCampaign, parse_speedups, run_causal
    from luthier_py.features.causal.report import causal_text
    from luthier_py.features.commands.console import show
    from luthier_py.features.settings.run_settings import run_settings

    campaign = CausalCampaign(parse_speedups(speedups), kind, tuple(tests or ()), most, method, repeats)
    with aside(), progress(None) as advance:
        found = run_causal(files, campaign, output, run_settings(device, limit), advance)
    if as_json:
        show(found, as_json)
        return
    for facts in found:
        print("\n".join([causal_text(facts), *(f"-> {name}" for name in facts["files"])]))
