"""How every page is filled in: escaped by default, and a name that is missing stops the page."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def page_environment() -> Environment:
    """The templates of this package; a page adds filters of its own."""
    return Environment(
        loader=PackageLoader("oodscope.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
