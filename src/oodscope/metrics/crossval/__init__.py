"""Metrics of cross-validation, and where their spread comes from."""
