"""Data: image sets from anywhere, and benchmarks that give them roles."""
