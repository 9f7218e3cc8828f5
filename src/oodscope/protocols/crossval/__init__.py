"""Dual cross-validation: folds of known images and of classes of outliers, and a network for each fold."""
