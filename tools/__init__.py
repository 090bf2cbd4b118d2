"""Built-in tools, one folder each; installed as ``luthier_py.tools`` and found through entry points like anybody's."""
