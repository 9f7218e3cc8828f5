"""Units of work: one file for each kind of job that is divided, how it is divided, done and joined."""
