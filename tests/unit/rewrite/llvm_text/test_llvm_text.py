"""LLVM's text, read and edited: parts are those that are there, and what is not asked for stays."""

from __future__ import annotations

from luthier_py.rewrite.llvm_text.functions import (
    TextFunction,
    body_of,
    find_callees,
    insert_at_start,
    read_alloca,
    read_call,
    rewrite_calls,
    without_expressions,
)
from luthier_py.rewrite.llvm_text.modules import (
    add_attribute,
    fields_of,
    functions_of,
    make_internal,
    read_module,
    read_variable,
    remove_attribute,
)
from luthier_py.rewrite.llvm_text.names import TextArgument, array_of, llvm_type, symbols_in

MODULE = """\
%struct.pair = type { i32, i32 }
@text = private unnamed_addr addrspace(4) constant [3 x i8] c"@x\\00", align 1
@"odd name" = linkonce_odr addrspace(1) externally_initialized global %struct.pair zeroinitializer, comdat, !dbg !1

define linkonce_odr hidden i32 @"f<int>"(ptr noundef align 4 captures(none) %p, i32 %n) unnamed_addr #0 comdat {
entry:
  %a = alloca [4 x i32], align 16, addrspace(5)
  %r = tail call i32 @g(ptr noundef nonnull %p, i32 range(i32 0, 9) %n) #3, !dbg !2
  ret i32 %r
}

declare i32 @g(ptr, i32)

attributes #0 = { mustprogress "target-cpu"="any" }
!1 = distinct !DIGlobalVariable(name: "a, b", line: 7, scope: !3)
"""


def test_parts_of_a_module() -> None:
    module = read_module(MODULE)
    assert list(module.symbols) == ["f<int>", "text", "odd name", "g"]
    assert "{ i32, i32 } zeroinitializer" in module.symbols["odd name"]
    assert module.attributes == {0: 'mustprogress "target-cpu"="any"'}
    assert fields_of(module.nodes[1]) == {"name": "a, b", "line": "7", "scope": 3}


def test_variables() -> None:
    module = read_module(MODULE)
    text, odd = read_variable(module.symbols["text"]), read_variable(module.symbols["odd name"])
    assert text is not None and odd is not None
    assert (text.constant, text.space, text.external, text.data) == (True, 4, False, '[3 x i8] c"@x\\00"')
    assert (odd.constant, odd.space, odd.external, odd.data) == (False, 1, True, "{ i32, i32 } zeroinitializer")
    assert array_of(text.data) == (3, "i8") and list(symbols_in(text.data)) == []


def test_parts_of_a_function() -> None:
    ((name, text),) = functions_of(MODULE)
    function = TextFunction.read(text)
    assert (name, function.gives, function.parameters) == ("f<int>", "i32", [("ptr", "%p"), ("i32", "%n")])
    alloca, call = read_alloca(function.blocks["entry"][0]), read_call(function.blocks["entry"][1])
    assert alloca is not None and (alloca.name, alloca.type, alloca.align) == ("%a", "[4 x i32]", 16)
    assert call is not None and (call.result, call.callee, call.after) == ("%r", "g", " #3, !dbg !2")
    assert call.arguments == (TextArgument("ptr", "noundef nonnull ", "%p"),
                              TextArgument("i32", "range(i32 0, 9) ", "%n"))
    assert str(call) == function.blocks["entry"][1] and find_callees(text) == ["g"]


def test_what_is_not_asked_for_stays() -> None:
    assert rewrite_calls(MODULE, "g", lambda call: call) == MODULE
    other = rewrite_calls(MODULE, "g", lambda call: call.of("h i", TextArgument("ptr", "", "null")))
    assert other == MODULE.replace("@g(ptr noundef nonnull %p, i32 range", '@"h i"(ptr null, i32 range')
    begin, _ = body_of(MODULE)
    assert insert_at_start(MODULE, "  ; here\n") == MODULE[:begin] + "  ; here\n" + MODULE[begin:]


def test_attributes_and_linkage() -> None:
    ((_, text),) = functions_of(MODULE)
    own = add_attribute(make_internal(text), "alwaysinline")
    assert own.splitlines()[0] == ('define internal i32 @"f<int>"(ptr noundef align 4 captures(none) %p, i32 %n) '
                                   "unnamed_addr alwaysinline #0 {")
    assert add_attribute(own, "alwaysinline") == own and remove_attribute(own, "alwaysinline") == make_internal(text)


def test_types_are_not_attributes() -> None:
    assert llvm_type("define weak_odr range(i32 0, 3) i32 ") == "i32"
    assert llvm_type("ptr addrspace(3) noundef captures(none) %p") == "ptr addrspace(3)"
    assert llvm_type("ptr byref({ i32, i32 }) align 4 %p") == ""


def test_expressions_become_instructions() -> None:
    body = ("  store i32 0, ptr addrspacecast (ptr addrspace(1) getelementptr inbounds (i8, ptr addrspace(1) %p, i64 4)"
            " to ptr)")
    assert without_expressions(body) == (
        "  %address0 = getelementptr inbounds i8, ptr addrspace(1) %p, i64 4\n"
        "  %address1 = addrspacecast ptr addrspace(1) %address0 to ptr\n  store i32 0, ptr %address1")
