"""Near-OOD images by training: like real ones to the eye, like none to an ensemble of classifiers."""
