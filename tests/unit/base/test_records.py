"""Records (base/records.py) beside data classes of the standard library: the same class made by both behaves alike."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from luthier_py.base import records

OPTIONS = [{"frozen": frozen, "slots": slots, "eq": eq, "order": order} for frozen in (False, True)
           for slots in (False, True) for eq in (False, True) for order in (False, eq)]  # fmt: skip
WAYS = pytest.mark.parametrize("options", OPTIONS, ids=lambda given: "-".join(name for name in given if given[name]))


@records.dataclass(frozen=True, slots=True)
class Site:
    """One that pickle finds by its name."""

    pc: int
    name: str = "s_nop"


@dataclasses.dataclass(frozen=True)
class Named(Site):
    """One of a user, by the standard library."""

    line: int = 3


def make(library: Any, **options: bool) -> tuple[type, type]:
    """A class, and one that inherits from it."""

    @library.dataclass(**options)
    class Base:
        shared: ClassVar[int] = 4
        first: int
        second: str = "two"

        @property
        def both(self) -> str:
            return f"{self.first}{self.second}"

    @library.dataclass(**options)
    class Derived(Base):
        third: dict[str, int] = library.field(default_factory=dict, compare=False)
        fourth: int = library.field(default=4, repr=False)
        fifth: int = library.field(default=5, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "fifth", self.first + 1)

    return Base, Derived


def outcome(call: Callable[[], Any]) -> Any:
    """What it gives, or the type of its error: texts of errors differ."""
    try:
        return call()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


CALLS: dict[str, Callable[[type, type], Any]] = {
    "repr": lambda base, derived: repr([base(1), derived(1, "b", {"x": 1}, 2)]),
    "positional and named": lambda base, derived: dataclasses.astuple(derived(1, fourth=7)),
    "own factory each": lambda base, derived: derived(1).third is derived(1).third,
    "too few": lambda base, derived: base(),
    "too many": lambda base, derived: base(1, 2, 3),
    "not in init": lambda base, derived: derived(1, fifth=3),
    "equal": lambda base, derived: (base(1) == base(1), base(1) == base(2), derived(1, third={"x": 1}) == derived(1)),
    "equal to another class": lambda base, derived: base(1) == derived(1),
    "hash": lambda base, derived: [len({*pair}) for pair in ((base(1), base(1)), (derived(1), derived(1)))],
    "less": lambda base, derived: (base(1) < base(2), base(1) >= base(2), sorted([base(2), base(1)])[0].first),
    "less than another class": lambda base, derived: base(1) < derived(1),
    "assign": lambda base, derived: setattr(base(1), "first", 2),
    "assign in derived": lambda base, derived: setattr(derived(1), "first", 2),
    "assign another name": lambda base, derived: isinstance(outcome(lambda: setattr(base(1), "other", 2)), type),
    "delete": lambda base, derived: delattr(base(1), "first"),
    "class attribute": lambda base, derived: (base.shared, outcome(lambda: base.second) == "two", base(1).both),
    "fields": lambda base, derived: [(each.name, each.init, each.repr, each.compare, str(each.type))
                                     for each in dataclasses.fields(derived)],
    "asdict": lambda base, derived: dataclasses.asdict(derived(1)),
    "replace": lambda base, derived: repr(dataclasses.replace(derived(1), first=3)),
    "replace what init does not take": lambda base, derived: dataclasses.replace(derived(1), fifth=3),
    "is": lambda base, derived: (dataclasses.is_dataclass(base), dataclasses.is_dataclass(derived(1))),
    "match": lambda base, derived: (base.__match_args__, derived.__match_args__),
    "copy": lambda base, derived: (repr(copy.copy(derived(1))), repr(copy.deepcopy(derived(1, third={"x": 2})))),
    "names": lambda base, derived: (base.__name__, base.__qualname__, base.__init__.__name__, base.__module__),
    "signature": lambda base, derived: (str(inspect.signature(base)), str(inspect.signature(derived))),
    "weak": lambda base, derived: hasattr(base(1), "__dict__"),
}  # fmt: skip


@WAYS
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_as_the_standard_library_s(options: dict[str, bool], call: Callable[[type, type], Any]) -> None:
    ours, theirs = make(records, **options), make(dataclasses, **options)
    for _ in range(2):  # the first call makes a method, and the second finds it
        assert outcome(lambda: call(*ours)) == outcome(lambda: call(*theirs))


def test_a_method_of_the_class_stays() -> None:
    @records.dataclass(frozen=True, slots=True)
    class ByName:
        name: str
        place: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, ByName) and self.name == other.name

        def __hash__(self) -> int:
            return hash(self.name)

        def __repr__(self) -> str:
            return self.name

    one, other = ByName("a", 1), ByName("a", 2)
    assert one == other and len({one, other}) == 1 and repr(one) == "a"


def test_pickled() -> None:
    assert pickle.loads(pickle.dumps(Site(4))) == Site(4)


def test_a_standard_data_class_of_a_record_keeps_its_fields() -> None:
    named = Named(4, line=7)
    assert copy.copy(named) == copy.deepcopy(named) == pickle.loads(pickle.dumps(named)) == named
    assert records.replace(named, pc=5) == dataclasses.replace(named, pc=5) == Named(5, line=7)
    assert str(inspect.signature(Named)) == "(pc: 'int', name: 'str' = 's_nop', line: 'int' = 3) -> None"


def test_signature_is_of_the_class_s_own_init() -> None:
    class Plain(Site):
        pass

    class Own(Site):
        def __init__(self, text: str) -> None:
            super().__init__(int(text))

        def __call__(self, other: int) -> None:
            pass

    assert inspect.signature(Plain) == inspect.signature(Site)
    assert [*inspect.signature(Own).parameters] == ["text"]
    assert [*inspect.signature(Own("4")).parameters] == ["other"]


def test_what_replaced_a_method_stays() -> None:
    @records.dataclass
    class Counted:
        number: int

    made: list[int] = []
    first = Counted.__init__

    def count(self: Counted, number: int) -> None:
        made.append(number)
        first(self, number)

    Counted.__init__ = count  # type: ignore[method-assign]
    assert [Counted(number).number for number in (1, 2, 3)] == made == [1, 2, 3]


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is of Python 3.13")
def test_replaced_by_copy() -> None:
    assert copy.replace(Site(4), pc=5) == Site(5)  # type: ignore[attr-defined]


def test_replace() -> None:
    changed = records.replace(Site(4), name="s_add")
    assert (changed.pc, changed.name) == (4, "s_add")
    with pytest.raises(TypeError):
        records.replace(Site(4), other=1)
    standard = dataclasses.make_dataclass("Other", ["a"])
    assert records.replace(standard(1), a=2).a == 2


def test_what_is_wrong_with_a_class_is_an_error_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="first"):
        @records.dataclass
        class _Order:
            first: int = 1
            second: str

    with pytest.raises(ValueError, match="first"):
        @records.dataclass
        class _Shared:
            first: list[int] = []  # noqa: RUF012

    with pytest.raises(TypeError, match="frozen"):
        @records.dataclass
        class _Thawed(Site):
            third: int = 3


def test_methods_are_made_when_they_are_first_used() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Fresh:
        number: int

    def made() -> list[str]:
        return [name for name in ("__init__", "__repr__", "__eq__", "__hash__")
                if Fresh.__dict__[name].__module__ == Fresh.__module__]

    assert made() == []
    assert Fresh(1).number == 1 and made() == ["__init__"]
    assert hash(Fresh(1)) == hash(Fresh(1)) and made() == ["__init__", "__hash__"]
