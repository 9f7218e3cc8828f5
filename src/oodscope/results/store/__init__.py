"""Many runs in one database, and how far running ones have come."""
