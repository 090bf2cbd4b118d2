"""Clones between passes: verified, printed and read again, for real kernels; and what a clone must not be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from luthier_py.base.errors import Invalid, LuthierError
from luthier_py.binary.loader.origins import BACK
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.inject import apply
from luthier_py.rewrite.inject.apply import inject
from luthier_py.rewrite.inject.items import Cause, Edit, Label, Run, Slice
from luthier_py.rewrite.inject.layout import lay_out
from luthier_py.rewrite.inject.text import format_clone, parse_clone
from luthier_py.rewrite.inject.verify import verify
from luthier_py.rewrite.jit import compile_hooks
from luthier_py.rewrite.pipeline import instrument, plan
from luthier_py.rewrite.tool import Place, load_tool
from luthier_py.samples import sample

ISA = instruction_set(target("gfx90a"))
PASSES = ["clone", "inline_calls", "look_up", "prologue", "wait_states", "relax", "clauses"]


def bytes_of(chunk):
    """And where they come from, by address: the text does not say which branches led back in the original."""
    places = {at + offset: pc + offset for at, pc, size in chunk.origins for offset in range(0, size & ~BACK, 4)}
    return replace(chunk, origins=()), places


@pytest.mark.parametrize("tool", ["instr_count", "opcode_histogram", "lds_bank_conflicts"])
@pytest.mark.parametrize("name", ["reduce", "function_pointers", "device_call"])
def test_every_pass_keeps_what_a_clone_promises(name, tool):
    planned = plan(sample(name).path.read_bytes(), load_tool(tool), name)
    isa, edits, done = planned.program.isa, planned.edits, []

    def seen(which, clone):
        verify(clone, which)
        text = format_clone(isa, clone)
        again = parse_clone(isa, text)
        verify(again, which)
        assert format_clone(isa, again) == text
        done.append(which)
        if which == PASSES[-1]:
            names = {function.address: function.name for function in planned.program.functions}
            assert bytes_of(lay_out(isa, again, names).chunk) == bytes_of(lay_out(isa, clone, names).chunk)
        return clone

    facts = planned.facts.with_reads(*map(edits.reads, Place))
    made = inject(planned.program, facts, edits, compile_hooks(edits, isa), seen=seen)
    assert made.chunks and list(dict.fromkeys(done)) in (PASSES, [n for n in PASSES if n != "prologue"]) or not done


TEXT = """clone k.luthier of 0x1000
.x1000:
  0x1000                   | s_mov_b32 s0, 0
  0x1004                   | s_mov_b32 s1, 0
  call 0 add before 0x1008 + s_getpc_b64 s[4:5]
.1:
  call 0 add before 0x1008 + s_add_u32 s4, s4, ? -> low total+8 - .1
  call 0 add before 0x1008 * v_mov_b32_e32 v1, 0x7fffffff
  0x1008                   = s_cbranch_scc1 -> .x1000
.x100c:
  0x100c                   | s_endpgm
"""


def test_the_text_may_have_remarks():
    assert format_clone(ISA, parse_clone(ISA, TEXT.replace("\n.x100c", "   ; loops\n\n; the end\n.x100c"))) == TEXT


@pytest.mark.parametrize("line", [
    "  0x1000 | s_mow s0", "  0x10x0 | s_nop 0", "  call add + s_nop 0", "  0x1000 s_nop 0"])
def test_wrong_lines_are_named(line):
    with pytest.raises(Invalid, match=f"line 3 .*{line.split()[0]}"):
        parse_clone(ISA, TEXT.replace("  0x1000                   | s_mov_b32 s0, 0", line))


def without(clone, item):
    return replace(clone, items=tuple(each for each in clone.items if each is not item))


def changed(clone, item, **to):
    return replace(clone, items=tuple(replace(each, **to) if each is item else each for each in clone.items))


def test_what_a_clone_must_not_be():
    clone = parse_clone(ISA, TEXT)
    verify(clone, "parse")
    head, first, getpc, base, low, payload, branch, _, last = clone.items
    assert isinstance(first, Slice) and isinstance(payload, Run) and isinstance(base, Label)
    wrong = {
        "item 8, the end: an instruction of the application is missing": without(clone, last),
        "item 7, a slice from 3 to 4: an instruction .* missing": without(clone, branch),
        "item 1, a slice from 0 to 2: .* in their order, each once": replace(clone, items=(*clone.items, first)),
        "item 0, s_cbranch_scc1 of 0x1008: .* missing": replace(clone, items=(branch, *clone.items[:6], last)),
        "item 3, s_add_u32: it names a label that stands nowhere": without(clone, base),
        "item 3, a label: the label stands twice": replace(clone, items=(*clone.items, base)),
        "item 8, the end: the label of 0x1000 stands nowhere": without(clone, head),
        "item 8, the label of 0x1000: .* elsewhere": replace(clone, items=(*clone.items[1:], head)),
        "neither": changed(clone, getpc, edit=None), "is no branch": changed(clone, branch, jump=None),
        "not filled in": changed(clone, low, reference=None), "empty": changed(clone, first, stop=first.start),
        "a run of wait 0 add: .* no hook's": changed(clone, payload, edit=Edit(Cause.WAIT, name="add")),
        "of hooks only": changed(clone, getpc, payload=True),
    }
    for fault, made in wrong.items():
        with pytest.raises(AssertionError, match=f"behind relax, clone k.luthier is wrong at .*{fault}"):
            verify(made, "relax")
    with pytest.raises(AssertionError, match="0x1004 is copied, but moves"):
        text = TEXT.replace("0x1004                   | s_mov_b32 s1, 0", "0x1004 | s_branch 1")
        verify(parse_clone(ISA, text), "clone")


@pytest.mark.parametrize("asked", ["1", "0"])
def test_passes_are_verified_where_that_is_asked_for(asked, monkeypatch):
    """What relax makes is wrong here: it has lost the last of its instructions."""
    def lose(isa, clone):
        return without(clone, clone.items[-1])

    monkeypatch.setenv("LUTHIER_VERIFY", asked)
    monkeypatch.setattr(apply, "relax", lose)
    with pytest.raises(AssertionError if asked == "1" else LuthierError) as caught:
        instrument(sample("reduce").path.read_bytes(), "instr_count")
    assert ("behind relax, clone reduce.luthier is wrong at item" in str(caught.value)) == (asked == "1")
