"""What every instruction does, written once; see meaning for the form and algebra for the words."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.isa.semantics.lookup import find_meaning, rows
    from luthier_py.isa.semantics.meaning import Dual, Lanes, Meaning, Scalar, Signature, SignaturePart

__all__ = ["Dual", "Lanes", "Meaning", "Scalar", "Signature", "SignaturePart", "find_meaning", "rows"]
__getattr__ = make_lazy_loader(__name__, {
    "lookup": "find_meaning rows",
    "meaning": "Dual Lanes Meaning Scalar Signature SignaturePart",
})  # fmt: skip
