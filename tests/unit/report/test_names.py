"""Names of files for whatever programs call things: inside one folder, and different from each other."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from luthier_py.report.names import FileNames, file_name

HARD = ["", ".", "..", "...", "/", "//", "a/b", "a\0b", "~", "-", "--help", "k", "K", "k-2", "con", "a\nb", "\udcff"]
TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(HARD) | st.text("kK-2.", max_size=4)


def test_plain_names_stay() -> None:
    assert [file_name(name) for name in ("_Z5saxpyjfPKfPf", "k.kd", "a-b")] == ["_Z5saxpyjfPKfPf", "k.kd", "a-b"]


def test_case_alone_does_not_tell_names_apart() -> None:
    names = FileNames()
    assert [names.of(text) for text in ("k", "K", "k-2", "k", "K")] == ["k", "K-2", "k-2-2", "k-3", "K-4"]


@settings(deadline=None, max_examples=300)
@given(st.lists(TEXTS, max_size=8))
def test_any_texts_have_safe_and_distinct_names(texts: list[str]) -> None:
    names = FileNames()
    found = [names.of(text) for text in texts]
    assert len({name.casefold() for name in found}) == len(texts)
    for name in found:
        assert Path("folder", name).parent == Path("folder") and name not in (".", "..")
        assert name.isascii() and "\0" not in name and len(name) <= 120 and name[0] not in ".-"
