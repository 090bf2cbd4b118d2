"""Program + edits + payloads -> Patched: clones of the chosen kernels with hooks inlined (`apply`), and its proof (`check`)."""
