"""Search for the images of a variation to which a detector gives its lowest scores."""
