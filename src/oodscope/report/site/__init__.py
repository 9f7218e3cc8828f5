"""The leaderboard as a static site: pages for people, tables for programs, no server and no network."""

from oodscope.report.site.render import render_pages, write_site

__all__ = ["render_pages", "write_site"]
