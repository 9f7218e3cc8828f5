"""Entries as they were submitted, standings as they were verified, and the board of all of them."""
