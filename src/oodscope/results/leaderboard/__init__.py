"""The leaderboard's records: entries as they were handed in, standings as they were found, the board of all."""
