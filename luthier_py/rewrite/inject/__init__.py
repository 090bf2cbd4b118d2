"""Program + edits + payloads -> Patched: clones of kernels with hooks inlined (`apply`), and a claim about them."""
