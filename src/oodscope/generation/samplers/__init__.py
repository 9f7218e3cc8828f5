"""Samplers: how a search moves. One file each; ``create_sampler`` of the registry knows them by name."""
