"""A number with its noun, as people read it."""


def counted(number: int | None, one: str, several: str = "") -> str:
    """Return a number with its noun: `1 ledger`, `2,000 events`.

    Of None, as an altered row may have it: `an unknown number of events`.
    """
    if number is None:
        return f"an unknown number of {several or f'{one}s'}"
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
