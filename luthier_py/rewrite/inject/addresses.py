"""Why the proof does not believe a hook's addresses, where its author can change that.

In: payloads of which some do what none may. Out: nothing; HookError names the hook that makes a pointer of a number.
Invariant: nothing that is right is refused here: the proof has refused already.
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.base.errors import CheckFailed, HookError
from luthier_py.isa import InstructionSet
from luthier_py.proof.payloads import summary
from luthier_py.rewrite.inject.claimed import build_payload_claim
from luthier_py.rewrite.jit import Payload, PayloadKey, makes_pointers

_INSTEAD = ("it makes a pointer of a number; declare the parameter as a pointer (Lane[ptr[T]], Lane[lds[T]]; in C++ "
            "lane<T *>, lane<lds<T>>), and make addresses of it: p + i, or ptr[T](u64(p) + n)")


def check_addresses(isa: InstructionSet, payloads: Mapping[PayloadKey, Payload]) -> None:
    """Raises HookError."""
    for key, payload in payloads.items():
        if not makes_pointers(key, isa):
            continue
        try:
            summary(isa, build_payload_claim(key, payload))
        except CheckFailed as error:
            if " touches " in error.message:
                raise HookError(f"{key.hook.place}: {error}: {_INSTEAD}") from error
