"""Density models: networks that score images by themselves, without a classifier."""
