"""The detectors, one file per paper or family."""
