"""A second definition of each operation that maps values to values, which shares nothing with isa.semantics.

In: an operation's name (OpInfo.base), what MODE and target say of NaN, fields that change meanings. Out: its rule.
`test_definitions` compares it with the row's own function.
"""

from __future__ import annotations

from reference.defined_conversions import conversion
from reference.defined_floats import How, comparison, float_rule
from reference.defined_integers import Defined, integer_rule
from reference.defined_scalars import scalar_rule


def definition(base: str, how: How, fields: dict[str, int]) -> Defined | None:
    prefix, _, name = base.partition("_")
    if base.startswith("V_S_"):  # of the vector ALU, for one number of a wave
        prefix, name = "V", base.removeprefix("V_S_")
    if prefix == "S":
        found = scalar_rule(name)
        if found is not None:
            return found
    elif prefix == "V":
        found = integer_rule(name, fields)
        if found is not None:
            return found
    else:
        return None
    return comparison(name) or conversion(name, how) or float_rule(name, how)
