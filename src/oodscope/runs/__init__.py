"""Everything that can be run and kept: one folder per kind of run."""
