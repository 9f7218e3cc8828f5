"""The protocol of generated benchmarks: detectors and calibration on them, their sanity, their validity."""
