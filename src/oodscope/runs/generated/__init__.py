"""Studies of generated sets: detectors and calibration on them, their sanity, their value (Raising the Bar)."""
