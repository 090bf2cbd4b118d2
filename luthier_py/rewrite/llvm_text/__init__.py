"""LLVM's IR as text, read and edited: the only package that depends on how LLVM writes it.

In: text that LLVM has printed. Out: its parts, or the text with some of them changed. Invariant: what no edit changes
stays as it is, letter by letter. A module is `read_module`'s parts; one of its functions is a TextFunction of labelled
blocks of lines; a line may be a TextCall or a TextAlloca, and a TextArgument is one of a call's.
"""
