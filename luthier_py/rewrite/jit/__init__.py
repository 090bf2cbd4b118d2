"""Hooks to payloads: device Python to LLVM IR to a fragment of machine code that inject inlines."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.rewrite.jit.compile import compile_hooks, compile_keys, makes_pointers
    from luthier_py.rewrite.jit.fingerprints import fingerprint
    from luthier_py.rewrite.jit.payload import Hole, Payload, PayloadKey, Slot, payload_key

__all__ = ["Hole", "Payload", "PayloadKey", "Slot", "compile_hooks", "compile_keys", "fingerprint", "makes_pointers",
           "payload_key"]
__getattr__ = make_lazy_loader(__name__, {
    "compile": "compile_hooks compile_keys makes_pointers",
    "fingerprints": "fingerprint",
    "payload": "Hole Payload PayloadKey Slot payload_key",
})  # fmt: skip
