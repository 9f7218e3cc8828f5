"""What to run, as a configuration: models, sets, jobs, studies; checked before the first image is read."""
