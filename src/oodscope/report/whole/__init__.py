"""The report over runs of every kind: one verdict, one scorecard, then every protocol by itself."""
