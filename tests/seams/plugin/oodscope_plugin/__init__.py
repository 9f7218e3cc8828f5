"""A package of somebody else: one thing of each kind that oodscope takes, each in its own module."""
