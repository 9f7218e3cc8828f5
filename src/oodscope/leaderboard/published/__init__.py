"""Tables of papers as standings of tier ``reported``: shown beside what was measured, never ranked."""
