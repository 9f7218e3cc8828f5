"""``oodscope demo``: the full pipeline on the embedded benchmark."""
