"""Verifying linked documents: each must be what it was when it was linked to a claim."""

from collections.abc import AsyncIterator, Mapping
from typing import Literal, NamedTuple

from projections.claim_documents.reader import ClaimDocumentsReader
from service.documents import paths
from service.ledger.database import Row
from service.storage.port import ObjectStore, StoredObject

Fault = Literal["missing", "changed", "remains"]


class CheckedDocument(NamedTuple):
    """A linked document, and what is wrong with it, if anything.

    Documents of an erased claim should be gone: `remains` means that the object is still there.
    """

    document: Row
    fault: Fault | None


async def verify(
    documents: ClaimDocumentsReader, store: ObjectStore
) -> AsyncIterator[CheckedDocument]:
    """Compare every linked document of a mode with the bucket; raises StorageUnavailable.

    Both are read side by side in the order of their names, so memory stays bounded.
    """
    objects, found = store.each(paths.ALL), None
    async for page in documents.pages():
        for row in page:
            while found is None or found.name < row["storage_path"]:
                found = await anext(objects, None)
                if found is None:
                    break
            yield CheckedDocument(row, await _fault(row, found, store))


async def _fault(row: Row, found: StoredObject | None, store: ObjectStore) -> Fault | None:
    path = row["storage_path"]
    if row["erased"]:
        is_listed = found is not None and found.name == path
        return "remains" if is_listed and path in await store.under(path) else None
    if found is not None and _is_as_linked(row, found):
        return None
    # The listing's page may be older than the link: only what is asked for now counts.
    now: Mapping[str, StoredObject] = await store.under(path)
    if path not in now:
        return "missing"
    return None if _is_as_linked(row, now[path]) else "changed"


def _is_as_linked(row: Row, found: StoredObject) -> bool:
    linked = (row["storage_path"], row["generation"], row["crc32c"], row["size"])
    return linked == (found.name, found.generation, found.crc32c, found.size)
