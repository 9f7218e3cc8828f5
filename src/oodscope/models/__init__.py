"""Classifiers: any network with its preprocessing, its head and an identity; and a zoo to make them from."""
