"""Master keys that a key service wraps: unwrapped once, under a deadline, and checked."""

import base64
import sys
from collections.abc import Iterator

import pytest

from service.app import key_service as kms
from service.app.key_service import KeyServiceFault, KmsKey, new_key, unwrapped
from service.app.master_keys import master_keys
from tests.key_service import NAME, KeyService, key_service
from tests.patience import PATIENCE_SECONDS
from tests.world import MASTER_KEY, settings_for

pytestmark = pytest.mark.server


@pytest.fixture
def service(monkeypatch) -> Iterator[KeyService]:
    """Return a running key service; nothing is remembered of another test's."""
    unwrapped.cache_clear()
    monkeypatch.setattr(kms, "SECONDS_MAX", PATIENCE_SECONDS)
    with key_service() as one:
        yield one


def ring(service: KeyService, tmp_path, *keys: str):
    """Return the ring of settings with these keys."""
    given = {"MASTER_KEYS": ",".join(keys), "KMS_ENDPOINT": service.url}
    return master_keys(settings_for("postgresql://nobody@127.0.0.1:1/none", tmp_path, **given))


def test_a_wrapped_key_is_one_of_the_ring(service, tmp_path):
    """Beside one in the clear, and asked for once, however often the ring is made."""
    key = new_key(NAME, service.url)
    alone = ring(service, tmp_path, key.text)
    both = ring(service, tmp_path, key.text, MASTER_KEY)
    assert both.newest == alone.newest
    assert both.ids[1] == ring(service, tmp_path, MASTER_KEY).newest
    assert len(unwrapped(key, service.url)) == 32
    assert service.calls == ["encrypt", "decrypt"]
    box = alone.wrap(b"data key", b"place")
    assert both.unwrap(box, alone.newest, b"place") == b"data key"
    assert service.calls == ["encrypt", "decrypt"]  # wrapping and unwrapping ask nobody


def test_a_ring_without_wrapped_keys_asks_nobody(service, tmp_path):
    """Nor does it import the client."""
    ring(service, tmp_path, MASTER_KEY)
    assert service.calls == []


def test_a_new_version_of_the_kms_key_opens_the_older_ones_keys(service):
    """KMS rotates its own keys: what an older version wrapped is still unwrapped."""
    key = new_key(NAME, service.url)
    service.keys[NAME].append(bytes(32))
    assert len(unwrapped(key, service.url)) == 32


def test_a_passing_fault_is_tried_again(service):
    """The service may be busy for a moment at the start."""
    key = new_key(NAME, service.url)
    service.statuses = [503, 503, 200]
    assert len(unwrapped(key, service.url)) == 32
    assert service.calls[1:] == ["decrypt"] * 3


@pytest.mark.parametrize(
    ("status", "said"), [(403, "told to fail"), (503, "Timeout"), (500, "Timeout")]
)
def test_a_lasting_fault_ends_the_start(service, monkeypatch, status, said):
    """It names the key and what the service said; it is not remembered."""
    key = new_key(NAME, service.url)
    service.statuses = [status]
    with monkeypatch.context() as briefly:
        briefly.setattr(kms, "SECONDS_MAX", 1.0)
        with pytest.raises(KeyServiceFault, match=rf"{NAME}: .*({said}|did not answer)"):
            unwrapped(key, service.url)
    service.statuses = []
    assert len(unwrapped(key, service.url)) == 32


def test_a_service_that_drips_is_not_waited_for(service, monkeypatch):
    """A byte now and then resets the client's time-outs; the deadline bounds them all."""
    key = new_key(NAME, service.url)
    monkeypatch.setattr(kms, "SECONDS_MAX", 0.5)
    service.silent.set()
    with pytest.raises(KeyServiceFault, match="did not answer"):
        unwrapped(key, service.url)


def test_another_key_or_an_altered_one_is_refused(service):
    """Also what the same KMS key encrypted for somebody else."""
    key = new_key(NAME, service.url)
    altered = KmsKey(NAME, key.ciphertext[:-1] + bytes([key.ciphertext[-1] ^ 1]))
    elsewhere = KmsKey(f"{NAME}2", key.ciphertext)
    for_others = {"additionalAuthenticatedData": "", "additionalAuthenticatedDataCrc32c": "0"}
    sealed = service.encrypt(
        NAME,
        for_others | {"plaintext": MASTER_KEY, "plaintextCrc32c": str(kms_crc(MASTER_KEY))},
    )
    other = KmsKey(NAME, base64.b64decode(sealed["ciphertext"]))
    for one, said in ((altered, "Decryption failed"), (elsewhere, "404"), (other, "Decryption")):
        with pytest.raises(KeyServiceFault, match=said):
            unwrapped(one, service.url)


def kms_crc(text: str) -> int:
    """Return the checksum of what base64 holds."""
    from google_crc32c import value  # noqa: PLC0415 - as above

    return value(base64.b64decode(text))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"plaintextCrc32c": "1"}, "did not arrive whole"),
        ({"plaintext": base64.b64encode(bytes(32)).decode()}, "did not arrive whole"),
        ({"plaintext": "", "plaintextCrc32c": "0"}, "has 0 bytes"),
        ({"plaintext": 7}, "something else"),
    ],
)
def test_an_answer_that_is_not_the_key_is_refused(service, answer, said):
    """Nothing of the answer is quoted."""
    key = new_key(NAME, service.url)
    service.answer = answer
    with pytest.raises(KeyServiceFault, match=said):
        unwrapped(key, service.url)


@pytest.mark.parametrize("answer", [{"ciphertextCrc32c": "1"}, {"verifiedPlaintextCrc32c": False}])
def test_a_new_key_that_may_be_damaged_is_not_handed_out(service, answer):
    """It would lose what it wraps."""
    service.answer = answer
    with pytest.raises(KeyServiceFault, match="whole"):
        new_key(NAME, service.url)


def test_a_missing_extra_is_named(service, monkeypatch):
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "google.cloud.kms_v1", None)
    with pytest.raises(KeyServiceFault, match=r"pip install '\.\[kms\]'"):
        new_key(NAME, service.url)
