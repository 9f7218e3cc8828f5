"""From a fitted detector to something that runs: scorers, thresholds, one file, ONNX."""
