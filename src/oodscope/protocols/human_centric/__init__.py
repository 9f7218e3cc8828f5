"""Human-centric evaluation: keep what the classifier gets right, reject what it gets wrong."""
