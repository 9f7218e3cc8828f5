"""What makes a classifier of any network: preprocessing, head, identity, one checked pass."""
