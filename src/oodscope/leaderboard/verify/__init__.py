"""Submission, verification and reruns: every number of an entry is computed again from its scores."""
