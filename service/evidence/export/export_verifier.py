"""Verifying an export with nothing but the file, public keys and perhaps an older checkpoint."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from service.evidence.authorisation import Lineage
from service.evidence.checkpoint import Checkpoint
from service.evidence.demands import NO_DEMANDS, Demands
from service.evidence.export.format import (
    CHECKPOINT_BEGINS,
    LINE_BYTES_MAX,
    CheckpointLine,
    EventLine,
    EvidenceFault,
    Header,
    decode,
    demanded,
    open_checkpoint,
    to_hash,
    to_hashes,
    to_text,
)
from service.evidence.export.linked import check_linked, lineage_begun
from service.evidence.note import NoteKey
from service.evidence.verdict import Countersigned, Fault, Verdict
from service.facts.lineages import lineage_stream
from service.ledger.merkle import CompactRange, is_consistent, root_by_inclusion

ORDER: Final = "events are missing, repeated or out of order"


_NOTHING: Final = Header(format="claim-ledger export v1", ledger="", first=1, size=0, root="")


def verify_export(
    path: Path,
    keys: Sequence[NoteKey],
    checkpoint: str | Checkpoint | None,
    advance: Callable[[int], object] = lambda _bytes: None,
    demands: Demands = NO_DEMANDS,
) -> Verdict:
    """Verify an export; `checkpoint` is an older one, or its note, that it has to continue.

    Its checkpoint has to have the signatures of others that `demands` requires. `advance` gets the
    number of bytes read. Raises OSError if the file cannot be read.
    """
    events = _Events(_NOTHING, None)
    older = found = fault = None
    try:
        if isinstance(checkpoint, str):
            older = open_checkpoint(checkpoint, keys, "the older checkpoint")
        else:
            older = checkpoint
        with path.open("rb") as file:
            events = _Events(_header(file), older, keys, demands)
            advance(file.tell())
            found = events.verify(file, advance)
    except EvidenceFault as error:
        fault = Fault(error.position, str(error))
    return Verdict.of(
        found.ledger if found else events.header.ledger,
        found.size if found else events.tree.size,
        found.root if found else events.tree.root(),
        events=events.count,
        first=events.header.first,
        entity=events.header.entity,
        checkpoints=0 if found is None else 1 if older is None else 2,
        lineages=len(events.lineages),
        set_aside=events.set_aside,
        countersigned=events.countersigned,
        fault=fault,
    )


def _header(file: BinaryIO) -> Header:
    header = decode(file.readline(LINE_BYTES_MAX), Header)
    tree = header.tree or []
    if header.first > header.size + 1:
        raise EvidenceFault(None, "the header's `from` is beyond its size")
    has_tree = header.first > 1 and header.entity is None
    if (header.tree is not None) != has_tree or (
        has_tree and len(tree) != (header.first - 1).bit_count()
    ):
        raise EvidenceFault(None, "the header's `tree` does not fit its `from`")
    return header


class _Events:
    """The events of an export so far: their tree, lineages and count."""

    def __init__(
        self,
        header: Header,
        older: Checkpoint | None,
        keys: Sequence[NoteKey] = (),
        demands: Demands = NO_DEMANDS,
    ) -> None:
        self.header = header
        self.older = older
        self._keys = keys
        self._demands = demands
        self.countersigned = Countersigned()
        """The signatures of others on the checkpoint, as far as they are required."""
        self.older_root: bytes | None = None
        self.next = header.first
        self.count = 0
        self.lineages: list[Lineage] = []
        self.tree = CompactRange()
        if header.entity is None:
            self.tree = CompactRange(header.first - 1, to_hashes(header.tree or []))
        self._root = to_hash(header.root)
        self._lineage = str(lineage_stream(header.ledger))
        self._lineage_version = 0
        self._look()

    def verify(self, file: BinaryIO, advance: Callable[[int], object]) -> Checkpoint:
        """Verify the lines after the header; return the checkpoint. Raises EvidenceFault."""
        header = self.header
        while not (raw := file.readline(LINE_BYTES_MAX)).startswith(CHECKPOINT_BEGINS):
            if not raw:
                raise EvidenceFault(self.expected, "the file ends without a checkpoint")
            self.take(raw)
            advance(len(raw))
        advance(len(raw))
        note = decode(raw, CheckpointLine).checkpoint
        if file.read(1):
            raise EvidenceFault(None, "there is something behind the checkpoint")
        if header.entity is None and self.next != header.size + 1:
            raise EvidenceFault(self.next, "events are missing before the checkpoint")
        checkpoint = open_checkpoint(note, self._keys, "the checkpoint")
        stated = (checkpoint.ledger, checkpoint.size, to_text(checkpoint.root))
        if stated != (header.ledger, header.size, header.root):
            raise EvidenceFault(None, "header and checkpoint are not of the same log and size")
        self._verify_tree(checkpoint)
        self._verify_origin(checkpoint)
        if self.older is not None:
            self._verify_older(checkpoint, self.older)
        self.countersigned = demanded(self._demands, note, checkpoint.size)
        return checkpoint

    def _verify_tree(self, checkpoint: Checkpoint) -> None:
        older, since, proof = self.older, self.header.first, self.header.consistency
        if self.header.entity is None and self.tree.root() != checkpoint.root:
            if older is not None and self.older_root == older.root and older.size < checkpoint.size:
                since = max(since, older.size + 1)
            message = f"the events from position {since} on do not make the checkpoint's root"
            raise EvidenceFault(since, message)
        if proof is not None and not is_consistent(
            proof.size,
            to_hash(proof.root),
            checkpoint.size,
            checkpoint.root,
            to_hashes(proof.proof),
        ):
            raise EvidenceFault(None, "the header's proof of consistency does not hold")

    def _verify_origin(self, checkpoint: Checkpoint) -> None:
        """Check that the checkpoint is of the lineage that the events say is the present one."""
        present = self.lineages[-1].origin if self.lineages else None
        if present is None and (self.header.first > 1 or not checkpoint.size):
            return  # it began before the first event of the file
        if checkpoint.origin != present:
            raise EvidenceFault(None, f"{checkpoint.origin} is not the present lineage of this log")

    def _verify_older(self, checkpoint: Checkpoint, older: Checkpoint) -> None:
        check_linked(self.lineages, checkpoint, older)
        root, proof, size = self.older_root, self.header.consistency, older.size
        if size == checkpoint.size:
            root = checkpoint.root
        elif root is None and proof is not None and proof.size == size:
            root = to_hash(proof.root)
        if root is None:
            raise EvidenceFault(
                None,
                f"nothing here tells of the older checkpoint's {size} events: export from "
                f"position {size + 1} or before, or with --checkpoint",
            )
        if root != older.root:
            message = f"the first {size} events are not those of the older checkpoint"
            raise EvidenceFault(1, message)

    @property
    def expected(self) -> int | None:
        """The position that has to come next; None in an entity's export, which skips many."""
        return self.next if self.header.entity is None else None

    def take(self, raw: bytes) -> None:
        """Verify the next event's line; raises EvidenceFault."""
        event = decode(raw, EventLine, self.expected)
        is_whole = self.header.entity is None
        if is_whole and event.position != self.next:
            raise EvidenceFault(self.next, ORDER)
        if event.position < self.next or event.position > self.header.size:
            raise EvidenceFault(event.position, ORDER)
        leaf = event.leaf()
        if is_whole == (event.proof is not None):
            raise EvidenceFault(event.position, "a proof for each event, or for none")
        if event.proof is None:
            self.tree.append(leaf)
            self._look()
        elif not self._includes(leaf, event.position, event.proof):
            raise EvidenceFault(event.position, "the event's proof does not lead to the root")
        if event.originator_id == self._lineage:
            self._take_lineage(event)
        self.next = event.position + 1
        self.count += 1

    def _take_lineage(self, event: EventLine) -> None:
        """Take an event of the stream of lineages, of which none is left out."""
        due = 1 if self.header.first == 1 else event.originator_version
        if event.originator_version != (self._lineage_version or due - 1) + 1:
            raise EvidenceFault(event.position, "an event of the stream of lineages is missing")
        self._lineage_version = event.originator_version
        if event.topic == "LineageBegun":
            # An export can leave out the lineages before its first event.
            begun = lineage_begun(event, self._keys, self.header.ledger, self.lineages)
            self.lineages.append(begun)

    @property
    def set_aside(self) -> list[int]:
        """The sizes of the checkpoints whose lost events the lineages here set aside."""
        return [one.follows_size for one in self.lineages if one.follows_size > one.shared_size]

    def _includes(self, leaf: bytes, position: int, proof: Sequence[str]) -> bool:
        try:
            found = root_by_inclusion(leaf, position - 1, self.header.size, to_hashes(proof))
        except ValueError:
            return False
        return found == self._root

    def _look(self) -> None:
        """Keep the root at the older checkpoint's size."""
        older = self.older
        if older is not None and self.header.entity is None and older.size == self.tree.size:
            self.older_root = self.tree.root()
