"""The leaderboard: records of entries, verification from their scores, published tables, the site."""
