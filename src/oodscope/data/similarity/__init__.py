"""Which images and classes are the same: duplicates, perceptual hashes, class names, WordNet."""
