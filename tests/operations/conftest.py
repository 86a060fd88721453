"""What tests of the operations listener share."""

from tests.small_disk import small_disk

__all__ = ["small_disk"]
