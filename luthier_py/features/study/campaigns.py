"""Campaigns of faults in a study: a table of its file, cut into parts, each of which a process carries out.

In: a [[campaign]]. Out: its parts, plain data; what became of a part's faults, as rows of reports. Invariant: which
faults a part has depends on its numbers alone, so parts may run anywhere, in any order, and a longer campaign has those
of a shorter one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.features.faults.drawing import MODELS, FaultCampaign
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.features.study.keys import Keys, flag, numbers_or_texts, text, texts, whole
from luthier_py.report.plain import Json

PLACE = "{folder}"
"""In words of a program, its results and checks: a folder that each part has for itself."""
FAULTS, PART = 1000, 50


@dataclass(frozen=True, slots=True)
class StudiedCampaign:
    """A campaign of a study's file. ``options``: the tool's; ``parts``: what each process gets of it, JSON-ready."""

    name: str
    options: Mapping[str, str]
    parts: tuple[Mapping[str, Any], ...]


def campaign_of(keys: Keys) -> StudiedCampaign:
    """Invalid names the key that is wrong."""
    name, options = keys.take("name", text), keys.take("options", numbers_or_texts, {})
    faults, part = keys.take("faults", whole, FAULTS), keys.take("part", whole, PART)
    results = keys.take("results", texts, ())
    for each in results:
        if each != "-" and not each.startswith(PLACE):
            raise keys.wrong("results", f"{each}: write {PLACE}/{each}, also where the program is told of it: a folder "
                                        "that each run has for itself")
    what = {"seed": keys.take("seed", whole, 1), "models": list(keys.take("models", texts, MODELS[:1])),
            "every_lane": keys.take("every_lane", flag, False), "results": list(results),
            "check": keys.take("check", text, "")}
    parts = tuple({**what, "first": first, "faults": min(part, faults - first)} for first in range(0, faults, part))
    try:
        campaign_part(parts[0], options)
    except Invalid as error:
        raise keys.wrong("models" if "model" in error.message.split()[0] else "options", error.message) from None
    if what["check"] and results:
        raise keys.wrong("check", "tells whether results are right; leave out `results`")
    keys.reject_unknown_keys()
    return StudiedCampaign(name, options, parts)


def campaign_part(part: Mapping[str, Any], options: Mapping[str, str]) -> FaultCampaign:
    """The faults of one part; Invalid for a model that is unknown, or an option that campaigns draw."""
    named = {name.upper(): value for name, value in options.items()}
    return FaultCampaign(part["faults"], part["seed"], tuple(part["models"]), named, part["every_lane"], part["first"])


def run_part(run: Mapping[str, Any], settings: RunSettings, folder: Path) -> Json:
    """``folder``: for the part alone. What `child.run_program` gives of a program."""
    from luthier_py.features.faults.campaign import faults_of  # the emulator, which a study's file does not need
    from luthier_py.features.faults.program import ProgramCheck, ProgramSubject

    part, place = run["faults"], str(folder / "results")
    Path(place).mkdir()
    words = [word.replace(PLACE, place) for word in run["command"]]
    files = tuple(Path(each.replace(PLACE, place)) for each in part["results"])
    check = part["check"].replace(PLACE, place)
    subject = ProgramSubject(tuple(words), ProgramCheck(files) if files else ProgramCheck(command=check))
    rows = faults_of(subject, campaign_part(part, run["options"]), folder, settings, lambda: None)
    launches = [{"launch": row["launch"], "launches": 1, "kernel": row["kernel"], "grid": [], "block": [],
                 "report": {name: value for name, value in row.items() if name != "file"}} for row in rows]
    return {"exit_code": 0, "verdicts": [{"reports": launches}], "undelivered": [],
            "observed": any(row["register"] is not None for row in rows)}


def fault_rows(reports: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Rows by number."""
    return sorted((dict(each["report"]) for each in reports), key=lambda row: int(row["number"]))
