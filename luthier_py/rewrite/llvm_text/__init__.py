"""LLVM's IR as text, read and edited: the only place that knows how LLVM writes it.

In: text that LLVM has printed. Out: its parts, or the text with some of them changed. Invariant: what is not asked for
stays as it is, letter by letter. A module is `read_module`'s parts; one of its functions is a TextFunction of labelled
blocks of lines; a line may be a TextCall or a TextAlloca, and a TextArgument is one of a call's.
"""
