"""Metrics of two samples of scores from one sort, and intervals of the AUROC."""
