"""Launches kept in files, and run again."""
