"""Launchers: who starts workers, and where. None of them decides what a unit gives."""
