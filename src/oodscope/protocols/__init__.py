"""Protocols: from a benchmark's scores to measurements."""
