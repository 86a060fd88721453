"""`claim-ledger audit`: evidence, for auditors and for whoever has to answer them."""

from service.cli.lazy import LazyGroup

audit = LazyGroup(
    name="audit",
    help="Checkpoints, verification, exports, receipts and replays of the ledgers.",
    lazy={
        "replay": "service.cli.audit.replay",
        "verify": "service.cli.audit.verify",
        "history": "service.cli.audit.history",
        "trace": "service.cli.audit.history",
        "keygen": "service.cli.audit.keys",
        "public-key": "service.cli.audit.keys",
        "checkpoint": "service.cli.audit.checkpoint",
        "lineage": "service.cli.audit.lineage",
        "export": "service.cli.audit.export",
        "prove": "service.cli.audit.prove",
        "check": "service.cli.audit.prove",
    },
)
