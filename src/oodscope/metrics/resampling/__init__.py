"""The bootstrap: draws shared by all detectors, replicates of every metric, intervals."""
