"""Metrics of dual cross-validation, and where their spread comes from."""
