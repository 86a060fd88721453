"""`claim-ledger audit verify`: of the database, or of an export without one."""

import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.audit.auditor import of_auditor
from service.cli.audit.evidence_file import refuse_kind
from service.cli.output import show
from service.cli.progress import progress
from service.cli.target import Findings, Target, team_command
from service.core.errors import Refusal
from service.evidence.note import NoteInvalid, NoteKey
from service.facts.caller import LEDGERS

if TYPE_CHECKING:
    from service.evidence.checkpoint import Checkpoint
    from service.evidence.verdict import Verdict

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_NOTE_BYTES_MAX: Final = 64_000


class PublicKey(click.ParamType[NoteKey, str]):
    """A public key as `audit keygen` prints it."""

    name = "key"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> NoteKey:
        """Return the key; fails without quoting what could be a secret."""
        try:
            key = NoteKey.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if key.can_sign:
            self.fail("this is a private key; expected the public one", param, ctx)
        return key


class NoteFile(click.ParamType[str, str]):
    """A file that holds a signed note."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the note's text; fails on what cannot be read, or is no text."""
        try:
            with Path(value).open("rb") as file:
                return file.read(_NOTE_BYTES_MAX).decode()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "not a signed note"
            self.fail(f"{value!r}: {why}", param, ctx)


def _offline_first(online: Callable[..., None]) -> Callable[..., None]:
    """With `--export` answer from the file alone: no settings, no database, no network."""

    @wraps(online)
    def run(
        *,
        export: Path | None,
        data_dir: Path | None,
        as_json: bool,
        ledger: str | None,
        public_key: tuple[NoteKey, ...],
        checkpoint: str | None,
    ) -> None:
        if export is None:
            online(
                data_dir=data_dir,
                as_json=as_json,
                ledger=ledger,
                public_key=public_key,
                checkpoint=checkpoint,
            )
            return
        if data_dir is not None or ledger is not None:
            raise click.UsageError("--export is verified alone; expected no --ledger, --data-dir")
        if not public_key:
            raise click.UsageError("--export needs --public-key, the key that signed")
        refuse_kind(export, "receipt", "use `claim-ledger audit check`")
        answer = _of_export(export, public_key, checkpoint)
        show(answer, as_json=as_json)
        if isinstance(answer, Findings):
            sys.exit(1)

    return run


@click.command()
@click.option(
    "--ledger", type=click.Choice(LEDGERS), help="One ledger alone; without it, all three."
)
@click.option("--export", type=_FILE, help="Verify this export; needs no database, no network.")
@click.option(
    "--public-key",
    type=PublicKey(),
    multiple=True,
    help="Accept this key's signatures too; can be given more than once.",
)
@click.option(
    "--checkpoint",
    type=NoteFile(),
    help="A signed checkpoint of old that the log has to go on from.",
)
@_offline_first
@partial(team_command, environment=of_auditor)
async def verify(
    target: Target,
    ledger: str | None,
    public_key: tuple[NoteKey, ...],
    checkpoint: str | None,
) -> dict[str, Any]:
    """Recompute the log from its tables or an export; ends with 1 if anything is wrong.

    `published` says how many published checkpoints it was held against: with none, all is said by
    the database itself. An export of a part proves that part: `from`, `entity` and `events` tell.
    It only reads, and needs public keys alone: CLAIM_LEDGER_MASTER_KEYS may be absent.
    """
    # Slow to import.
    from service.archive.port import ArchiveUnavailable
    from service.evidence.verify.expectations import published_evidence
    from service.evidence.verify.ledger_verifier import size_of, verify_ledger

    service = target.service
    keys = (*(service.settings.checkpoint_keys or ()), *public_key)
    if not keys:
        raise click.UsageError(
            "no key to check signatures by: give --public-key or CLAIM_LEDGER_CHECKPOINT_KEYS"
        )
    given = None if checkpoint is None else _opened(checkpoint, keys)
    names = [ledger] if ledger else list(LEDGERS)
    if given is not None and given.ledger not in names:
        said = f"it is of {given.origin}; expected one of {', '.join(names)}"
        raise click.BadParameter(said, param_hint="--checkpoint")
    verdicts: list[Verdict] = []
    for one in service.ledgers:
        if one.name not in names:
            continue
        own = given if given is not None and given.ledger == one.name else None
        try:
            evidence = await published_evidence(service.archive, one.name, keys, own)
        except ArchiveUnavailable as error:
            message = f"What was published cannot be read: {error}"
            raise Refusal("service_unavailable", message) from error
        with progress(f"verifying {one.name}", await size_of(one.database)) as advance:
            verdicts.append(await verify_ledger(one.database, evidence, advance))
    return _answer(verdicts)


def _answer(verdicts: "Sequence[Verdict]") -> dict[str, Any]:
    """Return the first faulty ledger, else the live one; several are listed too."""
    faulty = [one for one in verdicts if not one.ok]
    told = (faulty or [one for one in verdicts if one.ledger == "live"] or verdicts)[0]
    answer = _fields(told)
    if told.ok:
        del answer["position"], answer["fault"]
    if len(verdicts) > 1:
        about = {"about": f"what follows is of {told.ledger} alone; all of them are in `ledgers`"}
        answer = {"ok": told.ok, **about, **answer}
        answer["ledgers"] = [_fields(one) for one in verdicts]
    return Findings(answer) if faulty else answer


def _fields(verdict: "Verdict") -> dict[str, Any]:
    """Return a verdict's fields, `ok` first: it is what people look for."""
    names = ("ok", "ledger", "size", "root", "checkpoints", "published", "lineages")
    answer = {name: getattr(verdict, name) for name in (*names, "set_aside", "set_aside_size")}
    return answer | {"position": verdict.position, "fault": verdict.fault}


def _of_part(verdict: "Verdict") -> dict[str, Any]:
    """Return how much of a log an export had."""
    entity = {} if verdict.entity is None else {"entity": verdict.entity}
    return {"from": verdict.first, **entity, "events": verdict.events}


def _of_export(export: Path, keys: tuple[NoteKey, ...], older: str | None) -> dict[str, Any]:
    from service.evidence.export.export_verifier import verify_export

    if older is not None:
        _opened(older, keys)
    try:
        with progress("verifying", export.stat().st_size) as advance:
            verdict = verify_export(export, keys, older, advance)
    except OSError as error:
        raise click.ClickException(f"{export}: {error.strerror or error}") from error
    fields = _answer([verdict])
    del fields["published"]
    told = {name: fields.pop(name) for name in ("ok", "ledger")} | _of_part(verdict) | fields
    return told if verdict.ok else Findings(told)


def _opened(note: str, keys: Sequence[NoteKey]) -> "Checkpoint":
    """Open the checkpoint that is given; one that cannot be is wrong usage, and no finding."""
    from service.evidence.checkpoint import Checkpoint

    try:
        return Checkpoint.open(note, keys)
    except NoteInvalid as error:
        raise click.BadParameter(
            f"{error}; if its key is missing, put its public key at the end of "
            "CLAIM_LEDGER_CHECKPOINT_KEYS or give --public-key",
            param_hint="--checkpoint",
        ) from error
