"""The little that every station shares: errors, registry, hashing, atomic files, strict configuration."""
