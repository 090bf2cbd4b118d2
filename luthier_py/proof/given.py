"""What calls give to hooks and take from them, as the claim alone says it.

In: a function of a claim, and where the tool's variables are. Out: nothing, or CheckFailed. Invariant: the tool's
values of a wave have separate places, which nothing else names; a pointer that is given is that of a whole element
inside of a variable, or a register's; every value is as wide as its parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.isa import InstructionSet, LaneOf, Reg, RegFile
from luthier_py.proof.claim import Address, Call, Claim, ClonedFunction, InCell, Kept, Payload, Value
from luthier_py.proof.code import CELLS, LANES, bits_of, describe_registers, whole_number
from luthier_py.proof.initial_state import POINTERS

_ADDRESS_DWORDS = 2
MOST_ALIGNED = 8  # bytes: of several numbers, one behind the other, none is wider


def check_given(isa: InstructionSet, claim: Claim, function: ClonedFunction, variables: Mapping[str, int]) -> None:
    """``variables``: their addresses."""
    owned = _check_homes(isa, function)
    given = {(call.payload, call.arguments, call.into): call for call in function.calls}
    for call in given.values():
        for why in _faults(claim, call, function.locations, owned, variables):
            raise CheckFailed(f"hook {claim.payloads[call.payload].name} {why}", Location(function.name, call.point))


def _check_homes(isa: InstructionSet, function: ClonedFunction) -> int:
    """The registers and lanes that they take, and the registers that the lanes are of, as bits."""
    owned = whole = 0
    for location in function.locations.values():
        bits = bits_of(location)
        if not _can_hold(isa, location, function.private):
            raise CheckFailed(f"the tool cannot keep anything in {describe_registers(bits)}", Location(function.name))
        if owned & bits:
            raise CheckFailed(f"the tool keeps two things in {describe_registers(owned & bits)}",
                              Location(function.name))
        owned |= bits
        whole |= 0 if isinstance(location, Reg) else 1 << whole_number(location)
    return owned | whole


def _can_hold(isa: InstructionSet, location: Reg | LaneOf | InCell, private: range) -> bool:
    if isinstance(location, Reg):
        return (
            location.file is RegFile.SGPR
            and 0 <= location.index <= location.index + location.dwords <= isa.target.sgpr_limit
        )
    there = (0 <= location.cell < min(len(private) // 4, LANES - CELLS) if isinstance(location, InCell)
             else location.reg.file is not RegFile.SGPR and location.reg.dwords == 1)
    return there and 0 <= location.first <= location.first + location.dwords <= isa.wave_size


def _faults(claim: Claim, call: Call, locations: Mapping[int | str, Reg | LaneOf | InCell], owned: int,
            variables: Mapping[str, int]) -> Iterator[str]:
    payload = claim.payloads[call.payload]
    if (len(call.arguments), len(call.into)) != (len(payload.params), len(payload.results)):
        yield "gets or gives another number of values than it takes and has"
        return
    for place, value in (*zip(payload.params, call.arguments, strict=True),
                         *zip(payload.results, call.into, strict=True)):
        if isinstance(value, Kept) and value.number not in locations:
            yield f"is given or gives what the tool keeps as {value.number}, and that is nowhere"
        elif isinstance(value, Kept) and isinstance(value.number, str) and value in call.into:
            yield f"changes {value.number}, with which waves start"
        elif place.dwords != (_ADDRESS_DWORDS if isinstance(value, Address) else
                              locations[value.number].dwords if isinstance(value, Kept) else value.dwords):
            yield f"is given or gives {place.dwords} dwords, and {value} is of another size"
        elif isinstance(value, Reg) and bits_of(value) & owned:
            yield f"is given or gives {value}, where the tool keeps its own"
    for number, value in enumerate(call.arguments):
        yield from _faults_of_pointers(claim, payload, number, value, variables)


def _faults_of_pointers(
    claim: Claim, payload: Payload, number: int, value: Value, variables: Mapping[str, int]
) -> Iterator[str]:
    depth, size = payload.pointers[number], payload.pointed[number]
    if not isinstance(value, Address):
        if depth and isinstance(value, Kept) and value.number not in POINTERS:
            yield "is given a number that the tool keeps for a pointer"
        return
    if not depth or not size:
        yield f"is given the address of {value.variable} for a number"
    elif value.variable not in variables or value.variable not in claim.sizes:
        yield f"is given the address of {value.variable}, which is nowhere"
    elif not 0 <= value.offset <= claim.sizes[value.variable] - size:
        yield f"is given an address outside of {value.variable}"
    elif (variables[value.variable] + value.offset) % (whole := min(size & -size, MOST_ALIGNED)):
        yield f"is given an address in {value.variable} that is not a multiple of {whole}"
