"""Probes: what detectors need beyond logits and features, with the passes that each costs."""
