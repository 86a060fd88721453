from concurrent.futures import ThreadPoolExecutor

from google.oauth2 import service_account

from service.cli.dev.gcs.credentials import KEY_FILE, TOKEN_FILE, local_credentials


def test_the_key_is_a_service_accounts(tmp_path):
    """Google's library accepts the file as a service account's key."""
    local = local_credentials(tmp_path)
    account = service_account.Credentials.from_service_account_file(local.key_file)
    assert account.service_account_email == local.key["client_email"]
    assert local.public_key_of(account.signer_email) is local.public_key
    assert local.public_key_of("someone@example.com") is None
    assert local.public_key.key_size == 2048


def test_credentials_are_kept(tmp_path):
    """A second start finds the same key and token, in files for the owner alone."""
    first, second = local_credentials(tmp_path), local_credentials(tmp_path)
    assert (first.key, first.token) == (second.key, second.token)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([KEY_FILE, TOKEN_FILE])
    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o600, 0o600]


def test_concurrent_starts_agree_on_the_credentials(tmp_path):
    """All starts end with one key."""
    with ThreadPoolExecutor(4) as threads:
        drawn = list(threads.map(local_credentials, [tmp_path] * 4))
    assert len({one.key["private_key_id"] for one in drawn}) == 1
    assert len({one.token for one in drawn}) == 1


def test_secrets_are_not_shown(tmp_path):
    """The repr names the file and nothing in it."""
    local = local_credentials(tmp_path)
    assert repr(local) == f"LocalCredentials({tmp_path / KEY_FILE})"
