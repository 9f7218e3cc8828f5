"""Where pixels come from: arrays, files, lists, tables, shards and datasets, read when needed."""
