"""Where pixels come from: arrays, files, shards, tables, datasets, and other sources."""
