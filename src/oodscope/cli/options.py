"""Several names in one option."""


def separated(text: str) -> list[str]:
    """The names that stand between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
