"""Maintainers' part: from LLVM's TableGen records to the committed tables. Not needed to use them."""
