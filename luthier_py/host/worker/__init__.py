"""The process beside a running program: it runs kernels on the emulator, and puts tools into code objects.

A program's side is C (host/hip); the two speak through a socket and share an arena of memory.
"""
