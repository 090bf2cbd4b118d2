"""Proof that an instrumented copy is harmless, from the original's bytes, those that are loaded, and a claim.

It uses no program, no facts and no pass of those that made the copy. What it proves:

* `objects`: every byte, symbol, descriptor, metadata and dynamic entry of the original is as it was.
* `additions`: new symbols are those of the claim, in memory of their kind, found by their names (`hashes`);
  `descriptors`: a clone's descriptor and metadata are the original's, with room for the registers that its code names,
  and no more; `initial_state`: what a descriptor enables beside is where the application does not look.
* `application`, `addresses`: a clone's instructions are the original's, in order, field by field; branches reach the
  clone of their target, code makes the addresses that it made, direct calls go to clones, and so do calls through
  pointers to functions whose address the original has (`dispatch`: tried on numbers). `callees`: what is left below the
  stack pointer over a call.
* `payloads`: other code is a hook that the claim has, in other registers, between code that only computes. A hook
  touches memory only through what it was given as a pointer; it sends nothing, stops nothing, leaves nowhere.
* `given`: pointers that hooks get are those of elements of the tool's variables, or registers'; the tool's values of a
  wave have separate places.
* `runs`: where the application continues, all that it may still read is what it was: scalar registers, SCC, VCC, M0,
  EXEC and MODE, vector registers lane by lane, nothing that a load is still to write; or it is what the claim declares.
  Each hook runs once, where and in the order that the claim says, with the arguments and in the lanes that it says.
* `wave_registers`: no inserted code runs where a wave has deallocated its registers, and the application cannot see how
  many it has.
* `float_modes`: floats of a hook are rounded, and denormals handled, as it was compiled for, or as the application has
  it. A hook that makes scalars of lanes runs only where some lane is active, as its code shows.
* `return_addresses`: functions only move, save and return to theirs, which are others in a clone.
* `legality`: the hardware accepts inserted instructions as they are, and branches over their distances.
* `instead`: where the tool replaces some instructions, all of this is about the original with the replacements,
  which send control nowhere else, leave MODE alone, and operations on memory counted. A hook may run a removed
  instruction itself, once, which is all that may change LDS.
* `distances`, `hazard_patterns`: waits and wait states between inserted code and the application's.

What the application may read it finds for itself, in the original's bytes (`graph`, `modes`, `lanes`, `liveness`,
`pending`). What it trusts:

* loader, which reads both objects; the tables of isa with its rows of hazards, and the meanings in isa/semantics.
  What makes instructions is none of that;
* LLVM's compilation of a hook, and its author: addresses stay within what a pointer points to, and on the hook's stack;
  loops end;
* the claim in what the tool requested: which hook runs where with which arguments, what it may change, which
  instructions replace others, that numbers in a hook's code are addresses (`claim_check` compares that with the edits);
* the ABI: what a wave starts with, that scalar registers from the stack pointer on, and lanes in which a function
  keeps its return address, hold after a call what they held before it, where they are read; that such lanes are
  restored from private memory as they were saved; and that unknown code leaves the float bits of MODE alone;
* that a pointer to a function that the object does not have, and that is none of those tried, comes through the
  comparisons before an indirect call as it was (`dispatch`).
"""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.proof.claim import Claim
    from luthier_py.proof.judge import prove

__all__ = ["Claim", "prove"]
__getattr__ = make_lazy_loader(__name__, {"claim": "Claim", "judge": "prove"})
