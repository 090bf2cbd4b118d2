"""What an instruction's meaning says without running it: each file here is one reader of the semantics.

In: instructions, and rows of the semantics. Out: data. Invariant: a reader uses what the meanings say and nothing
else; what they do not say is unknown to it.
"""
