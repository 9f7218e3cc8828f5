"""Generated sets on disk: images, and the recipe that they came from and must agree with."""
