"""The browser notices what the other tests rely on it to notice."""

import pytest

pytestmark = pytest.mark.browser


def page_of(tmp_path, body):
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><title>x</title>{body}", encoding="utf-8")
    return path


def test_a_request_to_another_machine_is_noticed(browser, tmp_path):
    browser.open(page_of(tmp_path, '<img src="http://example.org/a.png">'))
    assert browser.outside == ["http://example.org/a.png"]
    with pytest.raises(AssertionError, match="example.org"):
        browser.errors.clear() or browser.check()
    browser.requests.clear()


@pytest.mark.parametrize("body", ["<script>console.error('broken')</script>", "<script>throw Error('broken')</script>"])
def test_an_error_is_noticed(browser, tmp_path, body):
    browser.open(page_of(tmp_path, body))
    with pytest.raises(AssertionError, match="broken"):
        browser.check()
    browser.errors.clear()


def test_a_script_against_the_policy_is_noticed(browser, tmp_path):
    policy = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">"
    browser.open(page_of(tmp_path, f"{policy}<script>document.title = 'run'</script>"))
    with pytest.raises(AssertionError, match="Content Security Policy"):
        browser.check()
    browser.errors.clear()


def test_width_and_colour_scheme_are_those_asked_for(browser, tmp_path):
    page = browser.open(page_of(tmp_path, ""), width=390, scheme="dark")
    assert page.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [390, True]
