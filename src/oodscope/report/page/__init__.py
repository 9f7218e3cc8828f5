"""HTML pages of runs: one file that needs nothing but a browser."""
