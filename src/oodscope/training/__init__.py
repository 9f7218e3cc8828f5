"""Training: a network, a recipe and labelled images in; the trained network out, exactly resumable."""
