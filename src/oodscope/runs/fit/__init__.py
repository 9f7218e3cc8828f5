"""Detectors fitted for deployment as runs: parameters, threshold, and the scores it was calibrated on."""
