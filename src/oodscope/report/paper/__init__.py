"""The figures of the papers whose protocols the package has, drawn from stored runs with matplotlib."""
