"""`claim-ledger audit verify`: verify the database, or an export without a database."""

import os
from collections.abc import Sequence
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from typing import Final

import click

from service.app.bootstrap import Service
from service.app.settings import LEDGER_URLS
from service.archive.port import ArchiveUnavailable
from service.cli.audit.auditor import auditor_settings, has_master_keys
from service.cli.audit.demands import fields_of, policy_option, time_anchor_option
from service.cli.audit.evidence_file import refuse_kind, refuse_nameless
from service.cli.audit.verdict_metrics import write_metrics
from service.cli.explained_actors import ExplainedActors
from service.cli.faults import one_line
from service.cli.options import ledger_option
from service.cli.output import print_answer
from service.cli.target import Environment, Run, Target, team_command
from service.cli.terminal import progress, warn
from service.cli.verdict import Fields, Findings, Fine, Told, Unjudged, ago, listed
from service.core.counted import counted
from service.core.errors import Refusal
from service.core.processors import processors
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.behind import behind
from service.evidence.demands import Demands
from service.evidence.export.export_verifier import verify_export
from service.evidence.export.format import EvidenceFault
from service.evidence.note import NOTE_MAX, NoteInvalid, NoteKey
from service.evidence.policy import Policy
from service.evidence.proofs.recomputed import compare_index
from service.evidence.streams_note import StreamsNote
from service.evidence.time_stamp import TimeAnchor
from service.evidence.verdict import Fault, Verdict
from service.evidence.verify.checkpoint_dates import misdated
from service.evidence.verify.expectations import published_evidence
from service.evidence.verify.known_actors import Accounts
from service.evidence.verify.ledger_verifier import size_of, verify_ledger
from service.facts.caller import LEDGERS

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_NOTE_BYTES_MAX: Final = 4 * NOTE_MAX
_LABELS: Final = {"set_aside": "lost_checkpoints", "set_aside_size": "largest_lost_checkpoint"}
"""To people, what `projections status` and `audit set-aside` have set aside are events."""
PROCESSES_MAX: Final = 4
"""This one included; as many connections to the ledger."""


def public_key_of(text: str) -> NoteKey:
    """Parse a public key as printed by `audit keygen`; fail without quoting a possible secret."""
    try:
        key = NoteKey.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if key.can_sign:
        raise click.BadParameter("this is a private key; expected the public one")
    return key


def note_in(path: str) -> str:
    """Return the signed note in a file; fail if it cannot be read or is not text."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_NOTE_BYTES_MAX).decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a signed note"
        raise click.BadParameter(f"{path!r}: {why}") from error


def _offline_first(online: Run) -> Run:
    """With `--export`, verify only the file: no settings, no database, no network."""

    @wraps(online)
    def run(
        *,
        export: Path | None,
        as_json: bool,
        public_key: tuple[NoteKey, ...],
        checkpoint: str | None,
        policy: Policy | None,
        time_anchor: tuple[TimeAnchor, ...],
        streams: str | None,
        **installation: object,
    ) -> None:
        if streams is not None and (export is None or checkpoint is not None):
            raise click.UsageError("--streams goes with --export, without --checkpoint")
        if export is None:
            online(
                as_json=as_json,
                public_key=public_key,
                checkpoint=checkpoint,
                policy=policy,
                time_anchor=time_anchor,
                **installation,
            )
            return
        if any(value is not None for value in installation.values()):
            raise click.UsageError(
                "--export is verified alone; expected no --ledger, --data-dir, --metrics"
            )
        if not public_key:
            raise click.UsageError("--export needs --public-key, the key that signed")
        refuse_kind(export, "receipt", "use `claim-ledger audit check`")
        demands = Demands(policy, time_anchor)
        given = _streams(streams, public_key) if streams is not None else checkpoint
        print_answer(_of_export(export, public_key, given, demands), as_json=as_json)

    return run


def _spares(_options: object) -> int:
    return min(PROCESSES_MAX, processors()) - 1


@partial(
    team_command,
    environment=Environment(LEDGER_URLS, auditor_settings),
    around=_offline_first,
    named="never",
    spares=_spares,
)
@ledger_option
@click.option("--export", type=_FILE, help="Verify this export, without a database or network.")
@click.option(
    "--public-key",
    type=public_key_of,
    metavar="KEY",
    multiple=True,
    help="Accept this key's signatures too; can be given more than once.",
)
@click.option(
    "--checkpoint",
    type=note_in,
    metavar="FILE",
    help="An older signed checkpoint, which the log must continue.",
)
@policy_option
@time_anchor_option
@click.option(
    "--streams",
    type=note_in,
    metavar="FILE",
    help="A signed note of the index of streams, to compare with the export.",
)
@click.option(
    "--metrics",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=refuse_nameless,
    metavar="FILE",
    help="Also write the outcome to this file, for the node exporter of Prometheus.",
)
async def verify(
    target: Target,
    ledger: str | None,
    public_key: tuple[NoteKey, ...],
    checkpoint: str | None,
    policy: Policy | None,
    time_anchor: tuple[TimeAnchor, ...],
    metrics: Path | None,
) -> Fields:
    """Recompute the log from its tables or an export; exits with 1 if anything is wrong.

    In the database it also checks the actor of every event: its key, member or staff existed and
    could act then, but for as many as CLAIM_LEDGER_EXPLAINED_ACTORS says; that the ids that
    partners see are kept from others; and that each published index of streams, and the nodes that
    are kept of the tree, are those of the events. It warns of dates of checkpoints that cannot be
    right, which nobody signs.

    On a standby that has not replayed all that was published, what it has is verified; `behind` is
    the size of the checkpoint that it lacks, `ok` is null, and the exit code is 3: whether the rest
    is late or lost, only the primary shows.

    `published` counts the published checkpoints that the log was compared with: without any, all
    evidence is the database's own. `lost_checkpoints`, in JSON `set_aside`, are those of events
    that a later lineage names as lost. An export of a part proves that part: `from`, `entity` and
    `events` say which. It only reads, and needs public keys alone: CLAIM_LEDGER_MASTER_KEYS may be
    absent. With them, it also checks that this service wrote every event, those that wait for their
    numbers included. Without them, an event that no signed checkpoint covers yet may say that
    somebody could act: `unproven_actors` counts those. None is compared with the times of those
    before it, by which one that is dated back would be found.
    """
    service = target.service
    keys = (*(service.settings.checkpoint_keys or ()), *public_key)
    if not keys:
        raise click.UsageError(
            "no key to check signatures with: give --public-key or CLAIM_LEDGER_CHECKPOINT_KEYS"
        )
    given = None if checkpoint is None else opened(checkpoint, keys)
    names = [ledger] if ledger else list(LEDGERS)
    if given is not None and given.ledger not in names:
        message = f"it is of {given.origin}; expected one of {', '.join(names)}"
        raise click.BadParameter(message, param_hint="--checkpoint")
    if metrics is not None and not os.access(metrics.parent, os.W_OK):
        warn(f"--metrics: {metrics.parent} cannot be written")
    verdicts: list[Verdict] = []
    demands = Demands(policy, time_anchor)
    has_ring = has_master_keys(service.settings)
    explained = ExplainedActors(service.settings)
    for log in service.ledgers:
        if log.name not in names:
            continue
        own = given if given is not None and given.ledger == log.name else None
        try:
            evidence = await published_evidence(service.archive, log.name, keys, own, demands)
        except ArchiveUnavailable as error:
            message = f"What was published cannot be read: {error}"
            raise Refusal("service_unavailable", message) from error
        with progress(
            f"verifying {log.name}", await size_of(log.database), unit="events"
        ) as advance:
            # Anew for each: another key may sign by the time that the others were read.
            roots = await service.secrets.known_events() if has_ring else None
            event_keys = None if roots is None else roots.of_ledger(log.name)
            accounts_keys = None if roots is None else roots.of_ledger("accounts")
            accounts = Accounts(service.accounts.database, accounts_keys)
            verdicts.append(
                await verify_ledger(
                    log.database, evidence, advance, accounts, event_keys, target.spares
                )
            )
        if verdicts[-1].ok and (dates := await misdated(log.database, service.clock())):
            warn(f"{log.name}: {dates}; a clock was wrong, or somebody changed what nobody signs")
        if (excess := explained.excess(log.name, verdicts[-1].actor_faults)) is not None:
            warn(excess)
    unwritten = None if metrics is None else _metrics_fault(metrics, verdicts, service.clock())
    # Whether a checkpoint counts takes the keys of events, which an auditor need not have.
    # Where a ledger does not hold, nothing may keep its verdict away.
    is_asked = has_ring and all(verdict.ok for verdict in verdicts)
    more = await _last_signed(service, verdicts) if is_asked else _NO_RING
    return answer_of(verdicts, more, explained, unwritten)


def _metrics_fault(metrics: Path, verdicts: Sequence[Verdict], at: datetime) -> str | None:
    """Write the outcome; return why it cannot be: that may not keep the verdict away."""
    try:
        write_metrics(metrics, verdicts, at)
    except click.ClickException as error:
        return f"--metrics was not written: {error.message}"
    return None


_NO_RING: Final = "MACs not checked without the master keys"
"""Shown of logs that hold."""


async def _last_signed(service: Service, verdicts: Sequence[Verdict]) -> str:
    states = [await service.checkpoints(verdict.ledger).state() for verdict in verdicts]
    signed = [state.made_at for state in states if state.made_at is not None]
    if not signed:
        return "no checkpoint yet"
    return f"last checkpoint signed {ago(service.clock() - max(signed))}"


def _is_fine(verdict: Verdict, explained: ExplainedActors | None) -> bool:
    """Return whether a log is as it was signed, and each actor could act or is explained."""
    if explained is None:
        return verdict.ok
    return verdict.ok and explained.cover(verdict.ledger, verdict.actor_faults)


def _verdict(
    verdicts: Sequence[Verdict],
    more: str,
    explained: ExplainedActors | None = None,
    unwritten: str | None = None,
) -> str:
    """Return the line for people: what was verified, or what is wrong where."""
    wrong = [one for one in verdicts if not _is_fine(one, explained)]
    faults = [f"{one.ledger}: {one.fault}" for one in wrong if one.fault]
    faults += [f"{one.ledger}: {one.actors_fault}" for one in wrong if one.actors_fault]
    faults += [unwritten] if unwritten else []
    if faults:
        return listed(faults)
    lacking = {one.ledger: one.behind for one in verdicts if one.behind is not None}
    if lacking:
        return f"{behind(lacking)}; what it has is as it was signed"
    events = sum(one.events for one in verdicts)
    parts = [counted(len(verdicts), "ledger"), counted(events, "event"), more]
    published = [one.published for one in verdicts if one.published is not None]
    if published:
        parts.append(f"compared with {counted(sum(published), 'published one')}")
    unproven = max((one.unproven_actors for one in verdicts), default=0)
    if unproven:
        parts.append(f"who could act is also from {counted(unproven, 'event')} of unknown origin")
    if explained is not None:
        parts += [
            explained.told(one.ledger, one.actor_faults) for one in verdicts if one.actor_faults
        ]
    return ", ".join(part for part in parts if part)


def answer_of(
    verdicts: Sequence[Verdict],
    more: str = "",
    explained: ExplainedActors | None = None,
    unwritten: str | None = None,
) -> Told:
    """Return the first faulty ledger, or one not judged, or the live one; list several.

    `more` is said of logs that are as they were signed. `explained` is None where no actor was
    checked. `unwritten` is why the file of `--metrics` could not be written.
    """
    faulty = [verdict for verdict in verdicts if not _is_fine(verdict, explained)]
    late = [verdict for verdict in verdicts if verdict.behind is not None]
    live = [verdict for verdict in verdicts if verdict.ledger == "live"]
    shown = (faulty or late or live or verdicts)[0]
    answer = _fields(shown, explained)
    if shown.ok:
        del answer["position"], answer["fault"]
    if len(verdicts) > 1:
        about = {"about": f"what follows is of {shown.ledger} alone; all of them are in `ledgers`"}
        answer = {"ok": answer["ok"], **about, **answer}
        answer["ledgers"] = [_fields(verdict, explained) for verdict in verdicts]
    if unwritten is not None:
        answer |= {"ok": False, "metrics_fault": unwritten}
    told = _verdict(verdicts, more, explained, unwritten)
    kind = Findings if faulty or unwritten else Unjudged if late else Fine
    return kind(answer, told, _LABELS)


def _fields(verdict: Verdict, explained: ExplainedActors | None) -> Fields:
    """Return a verdict's fields, with `ok`, which people look for, first."""
    names = ("ledger", "size", "root", "checkpoints", "published", "lineages")
    names += ("set_aside", "set_aside_size", "position", "fault")
    is_fine = _is_fine(verdict, explained)
    fields: Fields = {"ok": None if is_fine and verdict.behind is not None else is_fine}
    if verdict.behind is not None:
        fields["behind"] = verdict.behind
    fields |= {name: getattr(verdict, name) for name in names} | fields_of(verdict.countersigned)
    if verdict.unproven_actors:
        fields["unproven_actors"] = verdict.unproven_actors
    if explained is not None and verdict.actor_faults:
        fields["actor_faults"] = verdict.actor_faults
        fields["explained_actors"] = explained.of(verdict.ledger)
        fields["actors_fault"] = verdict.actors_fault
    return fields


def _of_export(
    export: Path,
    keys: tuple[NoteKey, ...],
    given: str | StreamsNote | None,
    demands: Demands,
) -> Fields:
    older = given.checkpoint if isinstance(given, StreamsNote) else given
    if isinstance(older, str):
        opened(older, keys)
    with (
        one_line(OSError, before=f"{export}: "),
        progress("verifying", export.stat().st_size, unit="MB", each=1_000_000) as advance,
    ):
        verdict = verify_export(export, keys, older, advance, demands)
        if verdict.ok and isinstance(given, StreamsNote):
            verdict = _compared(verdict, export, given)
    fields = answer_of([verdict])
    part = [f"from {verdict.first:,} on"] if (verdict.first or 1) > 1 else []
    part += [f"of {verdict.entity} alone"] if verdict.entity else []
    told = _verdict([verdict], " ".join(part))
    del fields["published"]
    covers = {"from": verdict.first, "entity": verdict.entity, "events": verdict.events}
    answer = {name: fields.pop(name) for name in ("ok", "ledger")}
    answer |= {name: value for name, value in covers.items() if value is not None}
    return (Fine if verdict.ok else Findings)(answer | fields, told, _LABELS)


def _compared(verdict: Verdict, export: Path, stated: StreamsNote) -> Verdict:
    """Return the verdict once an index of streams is compared, too."""
    try:
        compare_index(export, stated)
    except EvidenceFault as error:
        return verdict.with_fault(Fault(None, str(error)))
    return verdict


def _streams(note: str, keys: Sequence[NoteKey]) -> StreamsNote:
    """Open the given note of streams; raises BadParameter as `opened` does."""
    try:
        return StreamsNote.open(note, keys)
    except NoteInvalid as error:
        raise click.BadParameter(str(error), param_hint="--streams") from error


def opened(note: str, keys: Sequence[NoteKey], option: str = "--checkpoint") -> Checkpoint:
    """Open the given checkpoint; raises BadParameter, for that is wrong usage and no finding."""
    try:
        return Checkpoint.open(note, keys)
    except NoteInvalid as error:
        raise click.BadParameter(
            f"{error}; if its key is missing, put its public key at the end of "
            "CLAIM_LEDGER_CHECKPOINT_KEYS or give --public-key",
            param_hint=option,
        ) from error
