"""Pages for people, computed from a result alone."""
