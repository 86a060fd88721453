"""A small HTML reader that finds what is wrong with a page."""

from html.parser import HTMLParser
from typing import Final

PAGE_BYTES_MAX: Final = 100_000
"""Of a page with all that it needs."""

_VOID: Final = {"meta", "link", "input", "br", "hr", "img", "rect", "path", "line", "circle"}
_FIELDS: Final = {"input", "select", "textarea"}


class _Reader(HTMLParser):
    def __init__(self, csrf_field: str, *, wants_csrf: bool) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.open: list[str] = []
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.labels: set[str] = set()
        self.fields: list[dict[str, str | None]] = []
        self.title = ""
        self.forms = 0
        self.csrf_fields = 0
        self._csrf_field = csrf_field
        self._wants_csrf = wants_csrf

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an opened element."""
        given = dict(attrs)
        self._note(tag, given)
        if len(given) < len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        if tag == "html" and not given.get("lang"):
            self.faults.append("no lang")
        if tag in {"script", "style"} and not given.get("src"):
            self.faults.append(f"inline <{tag}>")
        self.faults += [
            f"inline {name} on <{tag}>" for name in given if name == "style" or name[:2] == "on"
        ]
        if tag == "th" and not given.get("scope"):
            self.faults.append("<th> without scope")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element that is opened and closed at once, as in SVG."""
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Record a closed element, which must be the last one opened."""
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing, or what is around it")

    def handle_data(self, data: str) -> None:
        """Record the title."""
        if self.open[-1:] == ["title"]:
            self.title += data

    def _note(self, tag: str, given: dict[str, str | None]) -> None:
        if tag in {"h1", "h2", "h3", "h4"}:
            self.headings.append(int(tag[1]))
        if identity := given.get("id"):
            self.ids.append(identity)
        if tag == "label":
            self.labels.add(given.get("for") or "")
        if tag in _FIELDS and given.get("type") != "hidden":
            inside = "label" in self.open or "aria-label" in given
            self.fields += [] if inside else [given]
        if tag == "form" and given.get("method") == "post":
            self.forms += 1
        if given.get("name") == self._csrf_field and given.get("value"):
            self.csrf_fields += 1

    def end(self) -> list[str]:
        """Return everything that is wrong."""
        faults = list(self.faults)
        if self.open:
            faults.append(f"never closed: {self.open}")
        if self.headings.count(1) != 1 or self.headings[:1] != [1]:
            faults.append(f"expected one h1, and first: {self.headings}")
        steps = zip(self.headings, self.headings[1:], strict=False)
        if any(below - above > 1 for above, below in steps):
            faults.append(f"headings skip a level: {self.headings}")
        if not self.title.partition("·")[0].strip():
            faults.append("no title")
        if len(set(self.ids)) < len(self.ids):
            faults.append(f"an id twice: {sorted(self.ids)}")
        faults += [
            f"no label: {one}" for one in self.fields if (one.get("id") or "-") not in self.labels
        ]
        if self._wants_csrf and self.forms != self.csrf_fields:
            faults.append(f"{self.forms} forms, {self.csrf_fields} of them with a token")
        return faults


def faults_of(html: str, csrf_field: str, *, signed_in: bool) -> list[str]:
    """Return what is wrong with a page; `signed_in`: each form has the session's token."""
    reader = _Reader(csrf_field, wants_csrf=signed_in)
    reader.feed(html)
    reader.close()
    doctype = [] if html.startswith("<!doctype html>") else ["no doctype"]
    return doctype + reader.end()
