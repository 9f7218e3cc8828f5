"""Audits: images and classes of a benchmark that are where they should not be."""
