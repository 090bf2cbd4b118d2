from __future__ import annotations
def matrix(t, inst, row): raise NotImplementedError
