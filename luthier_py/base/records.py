"""Data classes whose methods are made when a program first uses them: most records of an import never have an instance.

In: a class with annotated fields. Out: the class with what the standard library's ``dataclass`` gives it, for its
options ``frozen``, ``slots``, ``eq`` and ``order``; ``fields``, ``replace``, ``asdict``, ``astuple`` and
``is_dataclass`` take it. Invariant: a method that the class defines itself stays. The standard library compiles up to
seven methods for each class at import, which takes 0.3 to 0.6 ms; here a class takes a twentieth of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

_MISSING: Any = object()  # the default of a field that has none
_SHAPE = "__record_shape__"
_STANDARD = "__dataclass_fields__", "__dataclass_params__"
_COMPARISONS = {"__eq__": "==", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


class _Field(NamedTuple):
    """A field's first value, and which methods read it."""

    default: Any = _MISSING
    default_factory: Any = _MISSING
    init: bool = True
    repr: bool = True
    compare: bool = True


class _Shape(NamedTuple):
    """Fields in the order of ``__init__``, those of bases first, and their types as they are written."""

    fields: Mapping[str, _Field]
    types: Mapping[str, Any]
    frozen: bool
    slots: bool


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:

    def field(**options):
        """Declare a field by its ``default`` or ``default_factory``, ``init``, ``repr``, ``compare``."""
        return _Field(**options)

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, order=False):
        """Make a record of a class. Raises TypeError and ValueError as the standard library does."""

        def make(given):
            return _make_record(given, eq, order, _shape_of(given, frozen, slots))

        return make if cls is None else make(cls)

    def replace(record, /, **changes):
        """Make a copy of a record in which some fields differ."""
        shape = _find_shape(type(record))
        if shape is None:
            from dataclasses import replace as replace_standard

            return replace_standard(record, **changes)
        same = (name for name, each in shape.fields.items() if each.init and name not in changes)
        return type(record)(**{name: getattr(record, name) for name in same}, **changes)


def _shape_of(cls: type, frozen: bool, slots: bool) -> _Shape:
    fields: dict[str, _Field] = {}
    types: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        if _SHAPE in base.__dict__:
            inherited: _Shape = base.__dict__[_SHAPE]
            if inherited.frozen is not frozen:
                raise TypeError(f"{cls.__name__} and its base {base.__name__}: one is frozen, the other is not")
            fields.update(inherited.fields)
            types.update(inherited.types)
    for name, type_ in cls.__annotations__.items():
        if "ClassVar" not in str(type_):
            fields[name], types[name] = _read_field(cls.__dict__.get(name, _MISSING), name), type_
    required = [name for name, each in fields.items() if each.init and not _has_value(each)]
    optional = [name for name, each in fields.items() if each.init and _has_value(each)]
    if [*required, *optional] != [name for name, each in fields.items() if each.init]:
        raise TypeError(f"{cls.__name__}: a field without a default follows {optional[0]}, which has one")
    return _Shape(fields, types, frozen, slots)


def _find_shape(cls: type) -> _Shape | None:
    """That of a class's own fields; None where the standard library made it, if only from a record."""
    for base in cls.__mro__:
        if _SHAPE in base.__dict__:
            shape: _Shape = base.__dict__[_SHAPE]
            return shape
        if _STANDARD[0] in base.__dict__:
            return None
    return None


def _read_field(value: Any, name: str) -> _Field:
    read = value if isinstance(value, _Field) else _Field(default=value)
    if type(read.default).__hash__ is None:
        raise ValueError(f"field {name}: all records would share its default; use default_factory")
    return read


def _has_value(field: _Field) -> bool:
    return field.default is not _MISSING or field.default_factory is not _MISSING


def _make_record(cls: type, eq: bool, order: bool, shape: _Shape) -> type:
    own = dict(cls.__dict__)
    owner: list[type] = []
    made = {name: value for name, value in _methods(owner, eq, order, shape) if own.get(name) is None}
    if "__eq__" in made and "__hash__" not in made and own.get("__hash__") is None:
        made["__hash__"] = None  # equal, and not frozen
    made.update({"__signature__": _Signature()} if "__init__" in made else {})
    made.update({_SHAPE: shape, **{name: _Standard(name) for name in _STANDARD}, "__replace__": replace,
                 "__match_args__": tuple(name for name, field in shape.fields.items() if field.init)})
    record = _with_slots(cls, own, made, shape) if shape.slots else _with_attributes(cls, made, shape)
    owner.append(record)
    return record


def _with_slots(cls: type, own: Mapping[str, Any], made: Mapping[str, Any], shape: _Shape) -> type:
    """The class again: slots cannot be added to one that exists."""
    inherited = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    dropped = {*shape.fields, "__dict__", "__weakref__"}
    rest = {name: value for name, value in own.items() if name not in dropped}
    slots = tuple(name for name in shape.fields if name not in inherited)
    record = type(cls)(cls.__name__, cls.__bases__, {**rest, **made, "__slots__": slots})
    record.__qualname__ = cls.__qualname__
    return record


def _with_attributes(cls: type, made: Mapping[str, Any], shape: _Shape) -> type:
    for name in cls.__annotations__.keys() & cls.__dict__.keys() & shape.fields.keys():
        default = shape.fields[name].default
        delattr(cls, name) if default is _MISSING else setattr(cls, name, default)
    for name, value in made.items():
        setattr(cls, name, value)
    return cls


def _methods(owner: list[type], eq: bool, order: bool, shape: _Shape) -> Iterator[tuple[str, Any]]:
    late = ["__init__", "__repr__"]
    late += ["__eq__"] if eq else []
    late += ["__hash__"] if eq and shape.frozen else []
    late += ["__lt__", "__le__", "__gt__", "__ge__"] if order else []
    for name in late:
        yield name, _make_late(owner, name)
    if shape.frozen:
        yield "__setattr__", _refuse(owner, "assign to", "__setattr__")
        yield "__delattr__", _refuse(owner, "delete", "__delattr__")
    if shape.frozen and shape.slots:
        yield "__getstate__", _get_state
        yield "__setstate__", _set_state


def _make_late(owner: list[type], name: str) -> Callable[..., Any]:
    """A method that puts the compiled one in its own place, unless another has it by now, and calls it."""
    compiled: list[Callable[..., Any]] = []

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not compiled:
            compiled.append(_compile_method(owner[0], name))
        if owner[0].__dict__.get(name) is method:
            type.__setattr__(owner[0], name, compiled[0])
        return compiled[0](self, *args, **kwargs)

    method.__name__ = name
    return method


def _compile_method(cls: type, name: str) -> Callable[..., Any]:
    shape: _Shape = cls.__dict__[_SHAPE]
    scope: dict[str, Any] = {}
    if name == "__init__":
        text = _init_text(cls, shape, scope)
    elif name == "__repr__":
        parts = ", ".join(f"{name}={{self.{name}!r}}" for name, field in shape.fields.items() if field.repr)
        text = f'def __repr__(self):\n return f"{{self.__class__.__qualname__}}({parts})"'
    else:
        ours, others = ("".join(f"{one}.{name}, " for name, field in shape.fields.items() if field.compare)
                        for one in ("self", "other"))
        text = f"def __hash__(self):\n return hash(({ours}))"
        if name in _COMPARISONS:
            text = (f"def {name}(self, other):\n if other.__class__ is self.__class__:\n"
                    f"  return ({ours}) {_COMPARISONS[name]} ({others})\n return NotImplemented")
    exec(text, scope)
    made: Callable[..., Any] = scope[name]
    if name == "__repr__":
        from reprlib import recursive_repr

        made = recursive_repr()(made)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    made.__module__ = cls.__module__
    return made


def _init_text(cls: type, shape: _Shape, scope: dict[str, Any]) -> str:
    parameters, lines = [], []
    scope |= {"_missing": _MISSING, "_setattr": object.__setattr__}
    for name, field in shape.fields.items():
        scope |= {f"_first_{name}": field.default, f"_make_{name}": field.default_factory}
        value, made = name, field.default_factory is not _MISSING
        if not field.init:
            if not _has_value(field):
                continue
            value = f"_make_{name}()" if made else f"_first_{name}"
        elif made:
            parameters.append(f"{name}=_missing")
            value = f"_make_{name}() if {name} is _missing else {name}"
        else:
            parameters.append(name if field.default is _MISSING else f"{name}=_first_{name}")
        if not shape.frozen:
            lines.append(f"self.{name} = {value}")
        elif shape.slots:
            scope[f"_set_{name}"] = getattr(cls, name).__set__  # half the time of object.__setattr__
            lines.append(f"_set_{name}(self, {value})")
        else:
            lines.append(f"_setattr(self, {name!r}, {value})")
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    return f"def __init__({', '.join(['self', *parameters])}):\n " + "\n ".join(lines or ["pass"])


def _refuse(owner: list[type], verb: str, name: str) -> Callable[..., None]:
    def method(self: Any, field: str, *value: Any) -> None:
        cls = owner[0]
        if type(self) is cls or field in cls.__dict__[_SHAPE].fields:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot {verb} field {field!r}")
        getattr(super(cls, self), name)(field, *value)

    method.__name__ = name
    return method


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in _names_of(type(self))]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(_names_of(type(self)), state, strict=True):
        object.__setattr__(self, name, value)


def _names_of(cls: type) -> list[str]:
    shape = _find_shape(cls)
    return list(getattr(cls, _STANDARD[0]) if shape is None else shape.fields)


def _make_standard(cls: type) -> type:
    import dataclasses

    shape: _Shape = getattr(cls, _SHAPE)
    rows = []
    for name, each in shape.fields.items():
        given = {key: value for key, value in each._asdict().items() if value is not _MISSING}
        rows.append((name, shape.types[name], dataclasses.field(**given)))
    return dataclasses.make_dataclass(cls.__name__, rows, frozen=shape.frozen)


class _Standard:
    """What functions of `dataclasses` read of a class, made when one does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        standard = _make_standard(owner)
        for name in _STANDARD:
            type.__setattr__(owner, name, getattr(standard, name))
        return owner.__dict__[self.name]


class _Signature:
    """What `inspect` and ``help`` show of a class whose ``__init__`` is a record's, made when one does."""

    def __get__(self, instance: Any, owner: type) -> Any:
        first = next(base for base in owner.__mro__ if "__init__" in base.__dict__)
        if instance is not None or first.__dict__.get("__signature__") is not self:
            raise AttributeError("__signature__")
        from inspect import signature

        return signature(_make_standard(first))
