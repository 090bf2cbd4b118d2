"""The bank models: complete, consistent, and as their sources print them; and what instructions do to LDS."""

from __future__ import annotations

import pytest

from luthier_py.isa import Inst, instruction_set, target, targets, vgpr
from luthier_py.isa.timing.lds_banks import (
    CDNA4,
    GFX9,
    SOURCES,
    Evidence,
    LaneGroups,
    LdsAccess,
    Way,
    bank_model,
    lds_access,
)

MODELS = {bank_model(t).name: bank_model(t) for t in targets()}
SERVICES = [
    pytest.param(service, words, id=f"{model.name} {way} {32 * words}")
    for model in MODELS.values()
    for way, services in (("read", model.reads), ("write", model.writes))
    for words, service in enumerate(services, start=1)
]


def make(name: str, *operands: object, **modifiers: int) -> Inst:
    return instruction_set(target("gfx90a"), 64).make(name, *operands, **modifiers)


@pytest.mark.parametrize(("service", "words"), SERVICES)
def test_a_group_without_conflicts_fits_the_banks(service: LaneGroups, words: int) -> None:
    for wave_size in (32, 64):
        groups = service.groups(wave_size)
        assert len(groups) == service.count(wave_size)
        assert sorted(lane for group in groups for lane in group) == list(range(wave_size))
        assert len({len(group) for group in groups}) == 1 and len(groups[0]) * words <= service.banks
        assert all(service.group(lane) == service.group(group[0]) for group in groups for lane in group)
        assert len(service.parities) <= 3  # as many as the tool's device code takes


@pytest.mark.parametrize(("service", "words"), SERVICES)
def test_every_row_names_its_sources(service: LaneGroups, words: int) -> None:
    assert service.sources and set(service.sources) <= SOURCES.keys() and service.evidence in Evidence


def lanes(*firsts: int) -> tuple[int, ...]:
    return tuple(lane for first in firsts for lane in range(first, first + 4))


def test_groups_of_128_bit_reads_are_those_that_were_measured() -> None:
    """As the source `triton` prints them."""
    mi300 = {lanes(*pair) for pair in ((0, 20), (32, 52), (4, 16), (36, 48), (8, 28), (40, 60), (12, 24), (44, 56))}
    mi350 = {lanes(0, 12, 20, 24), lanes(32, 44, 52, 56), lanes(4, 8, 16, 28), lanes(36, 40, 48, 60)}
    assert set(GFX9.service(Way.READ, 4).groups(64)) == mi300
    assert set(CDNA4.service(Way.READ, 4).groups(64)) == mi350


def test_groups_of_128_bit_reads_on_rdna_are_those_that_were_measured() -> None:
    """As the source `shark` prints them."""
    crossed = {lanes(*pair) for pair in ((0, 20), (4, 16), (8, 28), (12, 24))}
    assert set(bank_model(target("gfx1100")).service(Way.READ, 4).groups(32)) == crossed
    eighths = {lanes(first, first + 4) for first in (0, 8, 16, 24)}
    assert set(bank_model(target("gfx1201")).service(Way.READ, 4).groups(32)) == eighths


def test_banks_of_gfx950() -> None:
    """64 for 64-bit and 128-bit reads only, as the source `rocroller` has it."""
    banks = {(way, words): CDNA4.service(way, words).banks for way in (Way.READ, Way.WRITE) for words in (1, 2, 3, 4)}
    assert {key for key, count in banks.items() if count == 64} == {(Way.READ, 2), (Way.READ, 4)}
    assert set(banks.values()) == {32, 64}


def test_models_of_targets() -> None:
    names = {name: bank_model(target(name)).name for name in ("gfx900", "gfx90a", "gfx942", "gfx950", "gfx1030")}
    assert names["gfx900"] == names["gfx90a"] == names["gfx942"] == GFX9.name
    assert (names["gfx950"], names["gfx1030"]) == (CDNA4.name, "RDNA")
    assert {bank_model(target(name)).service(Way.READ, 1).banks for name in ("gfx1100", "gfx1201")} == {32}
    assert bank_model(target("gfx1250")).service(Way.READ, 1).banks == 64


GFX950 = instruction_set(target("gfx950"))
A, D, DD, DDDD = vgpr(0), vgpr(2), vgpr(2, 2), vgpr(4, 4)


@pytest.mark.parametrize(
    ("inst", "access"),
    [
        (make("ds_read_b32", D, A, offset=12), LdsAccess(Way.READ, 1, (12,))),
        (make("ds_read_u8", D, A, offset=7), LdsAccess(Way.READ, 1, (7,))),
        (make("ds_write_b128", A, DDDD), LdsAccess(Way.WRITE, 4, (0,))),
        (make("ds_read2_b32", DD, A, offset0=1, offset1=255), LdsAccess(Way.READ, 1, (4, 1020))),
        (make("ds_read2st64_b64", DDDD, A, offset0=1, offset1=3), LdsAccess(Way.READ, 2, (512, 1536))),
        (make("ds_write2_b64", A, DD, DD, offset1=2), LdsAccess(Way.WRITE, 2, (0, 16))),
        (make("ds_add_u32", A, D, offset=4), LdsAccess(Way.ATOMIC, 1, (4,))),
        (make("ds_max_rtn_f64", DD, A, DD), LdsAccess(Way.ATOMIC, 2, (0,))),
        (GFX950.parse("ds_read_b64_tr_b16 v[2:3], v0 offset:8"), LdsAccess(Way.READ, 2, (8,))),
        (make("ds_bpermute_b32", D, A, D), None),
        (make("ds_swizzle_b32", D, A), None),
        (make("v_mov_b32_e32", D, A), None),
    ],
    ids=lambda value: value.op.mnemonic if isinstance(value, Inst) else "",
)
def test_what_instructions_do_to_lds(inst: Inst, access: LdsAccess | None) -> None:
    assert lds_access(inst) == access
