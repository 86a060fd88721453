"""Evidence files with something altered, spelled and hashed as docs/ledger-format.md says."""

import base64
import json
from hashlib import sha256


class Mutant:
    """Draws altered files of one kind."""

    def __init__(self, content, draw):
        self.lines = content.splitlines(keepends=True)
        self.draw = draw

    def byte(self):
        """Alter one byte, to another of its class or of any."""
        content = bytearray(b"".join(self.lines))
        at = self.draw.randrange(len(content))
        others = b'abcXYZ0189"\\,:{}[]=+/ \n\x00\x80\xff'
        content[at] = self.draw.choice([one for one in others if one != content[at]])
        return bytes(content)

    def bit(self):
        """Alter one bit."""
        content = bytearray(b"".join(self.lines))
        content[self.draw.randrange(len(content))] ^= 1 << self.draw.randrange(8)
        return bytes(content)

    def cut(self):
        """Truncate."""
        content = b"".join(self.lines)
        return content[: self.draw.randrange(len(content))]

    def drop(self):
        """Leave a line out."""
        at = self.draw.randrange(len(self.lines))
        return b"".join(self.lines[:at] + self.lines[at + 1 :])

    def repeat(self):
        """Have a line twice."""
        at = self.draw.randrange(len(self.lines))
        return b"".join(self.lines[: at + 1] + self.lines[at:])

    def swap(self):
        """Exchange two lines."""
        if len(self.lines) == 1:
            return self.bit()
        lines = list(self.lines)
        a, b = self.draw.sample(range(len(lines)), 2)
        lines[a], lines[b] = lines[b], lines[a]
        return b"".join(lines)

    def field(self):
        """Alter a field of a line, or add one, and spell the line as it should be."""
        lines = list(self.lines)
        at = self.draw.randrange(len(lines))
        line = json.loads(lines[at])
        inner = line
        if inside := _inside(line):
            inner = self.draw.choice([line, *inside])
        name = self.draw.choice(list(inner))
        inner[name] = self.draw.choice(
            [None, 0, 1, -1, 2**63, 1.0, True, "", "live", "x", [], {}, [inner[name]], "\ud800"]
        )
        lines[at] = spelled(line)
        return b"".join(lines)

    def rehashed(self):
        """Alter an event, and give it the hash that it has then."""
        lines = list(self.lines)
        at = self.draw.randrange(len(lines))
        line = json.loads(lines[at])
        event = next((one for one in _inside(line) if "state" in one), line)
        if "state" not in event:
            return self.bit()
        event["state"] = event["state"].replace("a", "b", 1)
        event["leaf_hash"] = base64.b64encode(hash_of(event)).decode()
        lines[at] = spelled(line)
        return b"".join(lines)

    def any(self):
        """Alter somehow."""
        kinds = [self.byte, self.bit, self.cut, self.drop, self.repeat, self.swap, self.field]
        return self.draw.choice([*kinds, self.rehashed])()


def _inside(line):
    """Return the objects within a line: events, parts and neighbours."""
    lists = [line.get(name) or [] for name in ("events", "lineages", "ledgers")]
    found = [one for among in lists for one in among]
    found += [line[name] for name in ("before", "after") if name in line]
    return found + [one for part in line.get("ledgers") or [] for one in part["events"]]


def spelled(line):
    """Return a line in its one spelling."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass") + b"\n"


def hash_of(event):
    """Return an event's leaf hash, in the words of docs/ledger-format.md."""
    state = sha256(event["state"].encode()).hexdigest()
    names = ("position", "append_id", "originator_id", "originator_version", "topic")
    columns = [str(event[name]) for name in names]
    record = "\n".join(["claim-ledger event v1", *columns, state]) + "\n"
    return sha256(b"\0" + record.encode()).digest()


def altered(content, number, change):
    """Return a file of which the line with a number was altered: `change` takes and alters it."""
    all_lines = content.splitlines(keepends=True)
    line = json.loads(all_lines[number])
    change(line)
    all_lines[number] = spelled(line)
    return b"".join(all_lines)


def settle(event):
    """Alter the event that settled the claim, and give it the hash that it has then."""
    event["state"] = event["state"].replace("settled", "rejected")
    event["leaf_hash"] = base64.b64encode(hash_of(event)).decode()
