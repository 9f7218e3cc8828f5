"""Generated sets: a plan, a pool of images, the choice among them by mutual information, and the files."""
