"""Studies of many models under one protocol."""
