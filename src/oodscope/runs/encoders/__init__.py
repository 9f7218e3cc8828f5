"""A scorecard of image encoders."""
