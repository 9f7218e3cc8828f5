"""A browser's view of a report, as far as tests need it: elements with their attributes and text."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    parent: "Element | None" = None
    children: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str, **attributes: str) -> list["Element"]:
        found = []
        for child in self.children:
            if isinstance(child, Element):
                fits = all(child.attributes.get(name.replace("_", "-")) == v for name, v in attributes.items())
                if child.tag == tag and fits:
                    found.append(child)
                found += child.all(tag, **attributes)
        return found

    def every(self) -> list["Element"]:
        inner = [child for child in self.children if isinstance(child, Element)]
        return [*inner, *(deeper for child in inner for deeper in child.every())]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.here = self.root = Element("document", {})

    def handle_starttag(self, tag, attrs):
        new = Element(tag, dict(attrs), self.here)
        self.here.children.append(new)
        if tag not in VOID:
            self.here = new

    def handle_startendtag(self, tag, attrs):
        self.here.children.append(Element(tag, dict(attrs), self.here))

    def handle_endtag(self, tag):
        assert self.here.tag == tag, f"</{tag}> closes <{self.here.tag}>"
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.children.append(data)


def read(html: str) -> Element:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.here is reader.root, f"<{reader.here.tag}> is never closed"
    return reader.root
