"""Why a rebuild ends without a change."""


class RebuildRefused(Exception):
    """A rebuild cannot continue; nothing live has changed. str() tells an operator why."""
