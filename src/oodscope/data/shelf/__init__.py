"""The shelf: what lies under the root, in which state, and how it gets there."""
