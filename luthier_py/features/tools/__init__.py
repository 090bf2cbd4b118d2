"""Tools and programs that are here."""
