"""Why nothing was observed, and what did not come, from verdicts alone."""

from __future__ import annotations

from luthier_py.base.errors import Location
from luthier_py.features.exec.execute import Executed
from luthier_py.features.exec.missing_output import describe_undelivered
from luthier_py.report.received import RecordCount
from luthier_py.report.verdict import Verdict
from luthier_py.rewrite.tool import Refusal, load_tool


def refused(**options: str) -> Verdict:
    verdict = Verdict(load_tool("mem_trace", options), launches=1, selected=1)
    verdict.refuse(Refusal("_Z3addPfi", "no register is free", Location("_Z3addPfi")))
    return verdict


def test_a_refusal_is_a_reason_why_nothing_was_observed() -> None:
    facts = {**refused().facts(), "ended": True, "failed": []}
    assert not facts["observed"]
    assert any("no register is free" in reason for reason in Executed(0, (facts,)).reasons)


def test_kernels_that_ran_as_they_are_have_the_names_that_were_asked_for() -> None:
    for mangled, name in (("0", "add(float*, int)"), ("1", "_Z3addPfi")):
        verdict = refused(MANGLED_NAMES=mangled)
        lines = describe_undelivered(verdict.tool, [{**verdict.facts(), "ended": True, "failed": []}])
        assert lines == (f"tool mem_trace: kernels ran as they are: {name}",)


def test_a_channel_of_prints_is_told_where_something_was_printed() -> None:
    verdict = Verdict(load_tool("mem_trace"), launches=1)
    verdict.records = {"luthier.printed": RecordCount(), "accesses": RecordCount()}
    assert "luthier.printed" not in verdict.text() and "accesses: 0 records" in verdict.text()
    verdict.records["luthier.printed"].received = 3
    assert "luthier.printed: 3 records" in verdict.text()
