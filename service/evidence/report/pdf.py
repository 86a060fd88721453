"""A report to read and to print: the events, and the signed checkpoints, also as QR codes."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import BinaryIO, Final

import msgspec
from reportlab.graphics import renderPDF
from reportlab.graphics.barcode.qr import QrCodeWidget
from reportlab.graphics.shapes import Drawing
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import simpleSplit
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from service.core.clock import timestamp
from service.core.invisible_characters import blanked
from service.evidence.report.lines import ReportLine
from service.evidence.report.writers import Cover, Proof

MARGIN: Final = 45.0
LEADING: Final = 1.35
QR_SIDE: Final = 150.0
QR_BYTES_MAX: Final = 1_200
"""Of a note: more is too fine for a telephone to read from paper."""
VALUE_MAX: Final = 400
"""Characters of an event's data; NDJSON has it whole."""

_TEXT, _BOLD, _MONO = "Vera", "VeraBd", "Courier"
_WIDTH, _HEIGHT = A4
_COLUMNS: Final = ((MARGIN, 42.0), (MARGIN + 46, 104.0), (MARGIN + 158, 347.0))
"""Where position, time and event begin, and how wide they are, in points."""
_HOW: Final = (
    "How to check this report. Every line names its ledger and the event's position in it. The "
    "signed checkpoint of each ledger stands below, as text and as a QR code. Compare it with one "
    "that you have from elsewhere (the archive, a witness, an earlier report), and verify its "
    "signature with the public key that the operator gave you. Then ask for the events: "
    "`claim-ledger audit export --ledger LEDGER --out FILE` has each event at its position, and "
    "`claim-ledger audit verify --export FILE --public-key KEY --checkpoint NOTE` proves on any "
    "machine that they are what the checkpoint states. docs/ledger-format.md has all that a "
    "verifier of your own needs. What an event says about the world is not proved; that it was "
    "written, where, and not changed since, is."
)


class PdfWriter:
    """Draws one page after the other; only the drawn pages are kept, compressed."""

    def __init__(self, out: BinaryIO, cover: Cover) -> None:
        """Draw the heading."""
        _register()
        self._canvas = Canvas(out, pagesize=A4, pageCompression=1)
        self._canvas.setTitle(f"claim-ledger report: {cover.subject.id}")
        self._y, self._page, self._ledger = _HEIGHT - MARGIN, 1, ""
        self._paragraph("Report of events", _BOLD, 16)
        period = f"{timestamp(cover.period.since)} until before {timestamp(cover.period.until)}"
        named = f" ({cover.name})" if cover.name else ""
        for text in (
            f"About {cover.subject.id}{named}",
            f"From {period}; the order is that of the log",
            f"Made {timestamp(cover.made_at)}",
        ):
            self._paragraph(text, _TEXT, 9)

    def line(self, line: ReportLine) -> None:
        """Draw an event; a heading first where another ledger begins."""
        if line.ledger != self._ledger:
            self._ledger = line.ledger
            self._y -= 8
            self._paragraph(f"Ledger {line.ledger}", _BOLD, 12)
        at = "" if line.at is None else timestamp(line.at)
        who = line.actor_name or line.actor
        by = f"by {who} ({line.actor})" if line.actor_name else f"by {who}" if who else ""
        personal = [f"{name}: {state}" for name, state in line.personal.items()]
        data = [f"{name} {_value(value)}" for name, value in line.data.items()]
        rows = [
            *_wrapped(line.meaning, _BOLD, 8, _COLUMNS[2][1]),
            *_wrapped(by, _TEXT, 7, _COLUMNS[2][1]),
            *_wrapped(", ".join((*data, *personal)), _TEXT, 7, _COLUMNS[2][1]),
        ]
        # Text that is longer than a page continues on the next one.
        for number, (text, font, size) in enumerate(rows):
            self._need(size * LEADING)
            if number == 0:
                self._put(_COLUMNS[0][0], str(line.position), _MONO, 7)
                self._put(_COLUMNS[1][0], at, _MONO, 7)
            self._put(_COLUMNS[2][0], text, font, size)
            self._y -= size * LEADING
        self._y -= 4

    def end(self, proofs: Sequence[Proof]) -> None:
        """Draw the checkpoints, and finish the file."""
        self._break()
        self._paragraph("Evidence", _BOLD, 14)
        self._paragraph(_HOW, _TEXT, 9)
        for proof in proofs:
            self._proof(proof)
        self._number()
        self._canvas.save()

    def _proof(self, proof: Proof) -> None:
        ledger, after, last = proof.part
        noun = "event" if proof.events == 1 else "events"
        text = f"Ledger {ledger}: {proof.events:,} {noun} of positions {after + 1} to {last}"
        if proof.note is None:
            self._paragraph(f"Ledger {ledger}: no event in the period", _BOLD, 9)
            return
        self._need(QR_SIDE + 40)
        self._y -= 8
        self._paragraph(text, _BOLD, 9)
        self._code(shortened(proof.note))
        for line in proof.note.split("\n"):
            for start in range(0, max(1, len(line)), 88):
                self._need(7 * LEADING)
                self._put(MARGIN, line[start : start + 88], _MONO, 7)
                self._y -= 7 * LEADING

    def _code(self, text: str) -> None:
        self._need(QR_SIDE)
        code = QrCodeWidget(text, barLevel="M", barWidth=QR_SIDE, barHeight=QR_SIDE)
        drawing = Drawing(QR_SIDE, QR_SIDE)
        drawing.add(code)
        self._y -= QR_SIDE
        renderPDF.draw(drawing, self._canvas, MARGIN, self._y)
        self._y -= 10

    def _paragraph(self, text: str, font: str, size: float) -> None:
        for line, _, _ in _wrapped(text, font, size, _WIDTH - 2 * MARGIN):
            self._need(size * LEADING)
            self._put(MARGIN, line, font, size)
            self._y -= size * LEADING
        self._y -= 3

    def _put(self, x: float, text: str, font: str, size: float) -> None:
        self._canvas.setFont(font, size)
        self._canvas.drawString(x, self._y - size, text)

    def _need(self, height: float) -> None:
        if self._y - height < MARGIN:
            self._break()

    def _break(self) -> None:
        self._number()
        self._canvas.showPage()
        self._page += 1
        self._y = _HEIGHT - MARGIN

    def _number(self) -> None:
        self._canvas.setFont(_TEXT, 7)
        self._canvas.drawRightString(_WIDTH - MARGIN, MARGIN / 2, f"Page {self._page}")


def shortened(note: str) -> str:
    """Return a note with as many of its signature lines as a QR code can hold, its first ones."""
    text, _, lines = note.rpartition("\n\n")
    found, *others = lines.removesuffix("\n").split("\n")
    for line in others:
        if len(f"{text}\n\n{found}\n{line}\n".encode()) > QR_BYTES_MAX:
            break
        found += f"\n{line}"
    return f"{text}\n\n{found}\n"


def _wrapped(text: str, font: str, size: float, width: float) -> Iterable[tuple[str, str, float]]:
    for line in simpleSplit(_drawable(text, font), font, size, width):
        for piece in _pieces(line, font, size, width):
            yield piece, font, size


def _pieces(line: str, font: str, size: float, width: float) -> Iterable[str]:
    """Yield a line; in pieces where an id or a word is wider than its column.

    Each character is measured once: partners choose how long their references are.
    """
    if pdfmetrics.stringWidth(line, font, size) <= width:
        if line:
            yield line
        return
    start, taken = 0, 0.0
    for at, character in enumerate(line):
        more = pdfmetrics.stringWidth(character, font, size)
        if at > start and taken + more > width:
            yield line[start:at]
            start, taken = at, 0.0
        taken += more
    yield line[start:]


def _drawable(text: str, font: str) -> str:
    """Return a text with `[U+4E2D]` for each character that the font has not."""
    known = _characters(font)
    return "".join(one if ord(one) in known else f"[U+{ord(one):04X}]" for one in blanked(text))


@cache
def _characters(font: str) -> frozenset[int]:
    return frozenset(TTFont(font, f"{font}.ttf").face.charToGlyph)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"


@cache
def _register() -> None:
    for name in (_TEXT, _BOLD):
        pdfmetrics.registerFont(TTFont(name, f"{name}.ttf"))
