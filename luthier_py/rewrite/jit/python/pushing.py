"""Records that bitcode pushes: a separate function in LLVM's text for each type of record, with the code of `push`.

In: what is known of the channels that a hook gives to bitcode. Out: text of the functions that a source calls to send
a record. Invariant: a push from bitcode is the same code as one from Python, with the fields read from a structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from luthier_py.base.records import replace
from luthier_py.rewrite.jit.python.builder import GLOBAL, Builder, llvm
from luthier_py.rewrite.jit.python.lowering import Lowering
from luthier_py.rewrite.jit.python.scope import Context, Scope
from luthier_py.rewrite.jit.python.source import source_of
from luthier_py.rewrite.jit.python.statements import Statements
from luthier_py.rewrite.tool.cpp.native import Native, Sender
from luthier_py.rewrite.tool.hooks.hook import Signature
from luthier_py.rewrite.tool.hooks.intrinsic import Value
from luthier_py.rewrite.tool.records.channel import RecordField, channel_type

_CHANNEL, _RECORD = "%channel", "%record"


def emit_push_functions(shared: Context) -> Iterator[str]:
    """What the bitcode that is called needs, each once."""
    callers: dict[Sender, Native] = {}
    for native in sorted(shared.ir.natives, key=lambda each: each.symbol):
        callers |= dict.fromkeys(native.senders, native)
    for sender, native in callers.items():
        yield _function(shared, sender, native)


def _function(shared: Context, sender: Sender, native: Native) -> str:
    ir = Builder()
    ir.declarations, ir.own_mode = shared.ir.declarations, shared.ir.own_mode
    scope = Scope(source_of(native), Signature((), ()), next(shared.numbers), 0, ir.new_block("end"), ())
    lowering = Lowering(body := Statements(replace(shared, ir=ir, printing=None), scope), scope.source.tree)
    kind = shared.channels.get(sender.record, channel_type(sender.record))
    given = Value(kind, ir.raw(f"addrspacecast ptr {_CHANNEL} to ptr {GLOBAL}"), lane=True)
    # Lanes may have chosen different channels; a parameter is uniform to LLVM.
    channel = ir.call("llvm.amdgcn.readfirstlane.p1", kind, (given,), lane=False)
    fields = [_field(ir, field, offset, body.lane(field.lane or not sender.record.of_wave))
              for field, offset in zip(sender.record.fields, sender.offsets, strict=True)]
    push = import_module("luthier_py.intrinsics").push  # imported by name: intrinsics depend on this package
    push.lower(lowering, channel, *fields)
    ir.finish("ret void")
    return f'define internal void @"{sender.symbol}"(ptr {_CHANNEL}, ptr {_RECORD}) alwaysinline #0 {{\n{ir.body()}\n}}'


def _field(ir: Builder, field: RecordField, offset: int, lane: bool) -> Value:
    where = ir.raw(f"getelementptr i8, ptr {_RECORD}, i64 {offset}")
    return ir.emit(field.type, f"load {llvm(field.type)}, ptr {where}, align {field.type.align_bytes}", lane)
