"""The leaderboard: entries are handed in with their scores, and every number is computed again from them."""
