"""Methods that learn from the test stream, one file per paper."""
