"""Shifted images by training: unlike real ones to the eye, of the same class to an ensemble of classifiers."""
