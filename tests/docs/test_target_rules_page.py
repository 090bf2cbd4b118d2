"""docs/target-rules.md: each setting and each field of a descriptor has its rule, and each rule a test."""

from __future__ import annotations

import re

from linked import DOCS, check_links, linked_tests

from luthier_py.binary.loader import KernelDescriptor
from luthier_py.isa import targets

PAGE = (DOCS / "target-rules.md").read_text("utf-8")
WHOLE = {"compute_pgm_rsrc1", "compute_pgm_rsrc2", "compute_pgm_rsrc3", "kernel_code_properties"}


def test_what_is_linked_is_there() -> None:
    check_links(PAGE)


def test_every_field_has_a_rule() -> None:
    fields = {name for name, value in vars(KernelDescriptor).items() if type(value).__name__ == "_Bits"} - WHOLE
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert len(fields) > 60 and fields <= named, fields - named
    assert {"sramecc", "xnack"} <= named and any(each.xnack for each in targets())


def test_every_rule_has_a_test() -> None:
    rows = re.findall(r"^\|(?!-)(?!.* source \| test \|$).*\|$", PAGE, re.MULTILINE)
    assert len(rows) > 25 and all(linked_tests(row) for row in rows)
