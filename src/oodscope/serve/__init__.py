"""The leaderboard, live: pages, runs and running evaluations of a result store, served over HTTP."""
