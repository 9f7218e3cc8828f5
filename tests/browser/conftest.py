"""The browser of these tests; they are skipped, with the reason, where there is none."""

from functools import cache

import pytest

from tests.browser import chromium as debian


@pytest.fixture(scope="package")
def chromium(pytestconfig):
    """One process for all tests. An attempt to install it that failed is not made again in this checkout."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install oodscope[dev]")
    if debian.find() is None:
        cache = pytestconfig.cache
        reason = cache.get("oodscope/chromium", None) or debian.fetch()
        cache.set("oodscope/chromium", reason)
        if reason:
            pytest.skip(reason)
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=debian.find(), args=list(debian.ARGUMENTS), timeout=120_000)
        yield started
        started.close()


@pytest.fixture
def browser(chromium):
    """A fresh profile; at the end no page may have complained, or asked the network for anything."""
    from tests.browser.browser import Browser

    opened = Browser(chromium)
    yield opened
    opened.close()
    opened.check()


@pytest.fixture(scope="package")
def made(tmp_path_factory):
    """The path of a page by its name; each is made when it is first asked for."""
    from tests.browser.made_pages import PAGES

    folder = tmp_path_factory.mktemp("pages")
    return cache(lambda name: PAGES[name](folder / name))
