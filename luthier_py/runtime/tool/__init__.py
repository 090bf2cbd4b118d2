"""The program's side of a tool, as far as it is the same for HIP and HSA: C sources of both libraries."""
