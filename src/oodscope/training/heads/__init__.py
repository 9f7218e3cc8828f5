"""Heads on frozen embeddings: what a fold costs when the backbone has already looked at every image."""
