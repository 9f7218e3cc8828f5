"""What an evaluation leaves behind: scores, measurements, records, the store, published tables."""
