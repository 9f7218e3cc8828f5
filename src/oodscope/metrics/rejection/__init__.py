"""Metrics of keeping and rejecting images, under one threshold and under all of them."""
