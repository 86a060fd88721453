"""The fault that stops a replay."""


class LogFault(Exception):
    """The log cannot be replayed; str() says at which `position` and why, for an operator."""

    def __init__(self, position: int, fault: str) -> None:
        """Keep the position."""
        super().__init__(f"position {position}: {fault}")
        self.position = position


def check_place(position: int | None, due: int) -> None:
    """Raise LogFault unless `position` is the one that is due; None: the log has ended."""
    if position is None or position > due:
        raise LogFault(due, "the log has no such event")
    if position < due:
        raise LogFault(position, "the log has it more than once")
