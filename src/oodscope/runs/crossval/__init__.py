"""Cross-validation: folds of ID images and of OOD classes, and a network for each (DCV-ROOD)."""
