"""The leaderboard as a static site: pages for people, tables for programs, no server and no network."""
