"""The forms of a page, as a browser has them: what their fields hold, and what would be posted."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Form:
    """A form: where it goes, and its fields; a box that is not ticked holds nothing."""

    action: str
    hidden: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[str]] = field(default_factory=dict)
    by_buttons: list[str] = field(default_factory=list)

    def changed(self) -> dict[str, str]:
        """Return other values than the fields have, of each field another."""
        return {name: self._other(name, held) for name, held in self.fields.items()}

    def posted(self, fields: dict[str, str]) -> dict[str, str]:
        """Return what a browser sends of these fields."""
        boxes = {name for name in self.fields if self.choices.get(name) == ["on"]}
        sent = {name: one for name, one in fields.items() if one or name not in boxes}
        return {name: one for name, one in self.hidden.items() if name != "csrf"} | sent

    def _other(self, name: str, held: str) -> str:
        known = self.choices.get(name)
        if known is None:
            return f'{name}: <é & "1">'
        return "" if held and known == ["on"] else next(one for one in known[::-1] if one != held)


class _Reader(HTMLParser):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.forms = [Form("")]
        self.name = ""
        self.is_text = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given, form = {name: value or "" for name, value in attrs}, self.forms[-1]
        kind, name, value = given.get("type"), given.get("name", ""), given.get("value", "")
        match tag:
            case "form":
                self.forms.append(Form(given.get("action", self.path)))
            case "button" if "formaction" in given:
                form.by_buttons.append(given["formaction"])
            case "input" if kind == "hidden":
                form.hidden[name] = value
            case "input" if kind in {"checkbox", "radio"}:
                self._choice(form, name, value or "on", is_on="checked" in given)
            case "input":
                form.fields[name] = value
            case "option":
                self._choice(form, self.name, value, is_on="selected" in given)
            case "select" | "textarea":
                self.name, self.is_text = name, tag == "textarea"
                form.fields[name] = ""
            case _:
                pass

    def handle_endtag(self, tag: str) -> None:
        self.is_text = self.is_text and tag != "textarea"
        if tag == "form":
            self.forms.append(Form(""))

    def handle_data(self, data: str) -> None:
        if self.is_text:
            self.forms[-1].fields[self.name] += data

    @staticmethod
    def _choice(form: Form, name: str, value: str, *, is_on: bool) -> None:
        form.choices.setdefault(name, []).append(value)
        form.fields[name] = value if is_on else form.fields.get(name, "")


def forms_of(page: str, path: str) -> dict[str, Form]:
    """Return the forms of a page by where they go; the last of several that go to one place."""
    reader = _Reader(path)
    reader.feed(page)
    forms = [form for form in reader.forms if form.action]
    return {path: form for form in forms for path in (form.action, *form.by_buttons)}
