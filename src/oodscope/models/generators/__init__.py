"""Generators: networks that draw images, the discriminators that train them, and their file."""
