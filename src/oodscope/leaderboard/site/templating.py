"""How the pages of the site are filled in: escaped by default, a link out only where it is plain https."""

from functools import cache
from importlib.metadata import version
from urllib.parse import urlsplit

from jinja2 import Environment

from oodscope.document.number import Number
from oodscope.document.wording import shown
from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.standing import Tier
from oodscope.leaderboard.site.addresses import method_page, model_page
from oodscope.leaderboard.site.words import GRAVE, TIERS, TRACKS, TUNINGS, not_covered
from oodscope.protocols.registry import described_protocols
from oodscope.report.page.templating import page_environment


@cache
def site_environment(*, live: bool = False) -> Environment:
    """The templates, with the words and addresses that all pages use; compiled once, a server asks often.

    Parameters
    ----------
    live : pages of a server, which show runs too and ask it what is new; those of a folder ask nobody.
    """
    environment = page_environment()
    environment.filters |= {
        "method_page": method_page,
        "model_page": model_page,
        "https": is_https,
        "main": _main,
        "below": _below,
        "grave": lambda flags: any(flag.startswith(GRAVE) for flag in flags),
        "not_covered": not_covered,
        "published": _published,
        "begin": lambda text: text[:1].upper() + text[1:],
        "tier_order": list[Tier](TIERS).index,
    }
    environment.globals |= {
        "tiers": TIERS,
        "tracks": TRACKS,
        "tunings": TUNINGS,
        "protocols": described_protocols(),
        "version": version("oodscope"),
        "live": live,
    }
    return environment


def is_https(address: str) -> bool:
    """Whether a browser may follow it: entries are checked when read, but a page trusts nobody."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname)


def _published(entry: Entry) -> str:
    """Venue and year; the number of a preprint tells its year."""
    if entry.paper is None:
        return ""
    venue = entry.paper.venue
    year = entry.paper.year if entry.paper.year and not venue.startswith("arXiv") else ""
    if str(year) in venue:
        return venue
    return f"{entry.paper.venue} {year}".strip()


def _main(cell: Number) -> str:
    """The value alone."""
    return shown(cell.value, cell.unit)


def _below(cell: Number) -> str:
    """What stands below it: its interval, or its spread over runs."""
    return cell.interval or ("" if cell.sd is None else f"±{shown(cell.sd, cell.unit)}")
