"""Keys that were good before are known again, and nothing else is."""

from service.partner_api.known_keys import KnownKeys

KEY = "Bearer pk_live_ptn_1.key_1.secret"


def test_a_good_key_is_known_by_its_whole_token() -> None:
    """Its id is no secret: with another secret, partner or mode it is unknown."""
    known = KnownKeys()
    assert not known.knows(KEY)
    known.remember("key_1", KEY)
    assert known.knows(KEY)
    assert known.knows("bearer  pk_live_ptn_1.key_1.secret ")
    for other in (
        "Bearer pk_live_ptn_1.key_1.guess",
        "Bearer pk_live_ptn_2.key_1.secret",
        "Bearer pk_test_ptn_1.key_1.secret",
        "Bearer pk_live_ptn_1.key_2.secret",
        "Bearer nonsense",
        "",
        None,
    ):
        assert not known.knows(other)


def test_a_key_that_was_revoked_is_forgotten() -> None:
    """Forgetting one that nobody knew changes nothing."""
    known = KnownKeys()
    known.remember("key_1", KEY)
    known.forget("key_2")
    assert known.knows(KEY)
    known.forget("key_1")
    assert not known.knows(KEY)


def test_memory_is_bounded() -> None:
    """The key that has been known longest makes room."""
    known = KnownKeys(keys_max=2)
    keys = [f"Bearer pk_live_ptn_1.key_{number}.secret" for number in range(3)]
    for number, key in enumerate(keys):
        known.remember(f"key_{number}", key)
    assert len(known) == 2
    assert [known.knows(key) for key in keys] == [False, True, True]
    known.remember("key_2", keys[2])  # used again: it needs no room
    assert [known.knows(key) for key in keys] == [False, True, True]
