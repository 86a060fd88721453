"""Applying the whole list of erasures."""

from functools import partial

from service.cli.erasing import signed_out
from service.cli.target import Target
from service.privacy.reapply import Reapply, ReapplyOutcome
from tests.privacy.team import Privacy
from tests.world import STAFF


async def reapplied(privacy: Privacy, advance=lambda _steps: None) -> ReapplyOutcome:
    """Apply the list; return the outcome."""
    modes = privacy.service.privacy(privacy.listed)
    out = partial(signed_out, Target(privacy.service, STAFF))
    names = await privacy.listed.names()
    return await Reapply(privacy.listed, modes, out, STAFF).run(names, advance)
