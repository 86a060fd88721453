from service.app import web
from service.http.rate_limit import redis
from service.http.rate_limit.limiter import RateLimiter
from tests.patience import PATIENCE_SECONDS
from tests.world import settings_for, world_on


async def test_without_redis_the_service_limits_per_process(
    database_url, tmp_path, redis_server, monkeypatch
):
    """Requests are answered under a limit of the process, and the metric raises the alarm."""
    monkeypatch.setattr(redis, "TIMEOUT_SECONDS", PATIENCE_SECONDS)
    limiters = []

    def make(**given):
        limiters.append(RateLimiter(**given))
        return limiters[-1]

    monkeypatch.setattr(web, "RateLimiter", make)
    settings = settings_for(database_url, tmp_path, REDIS_URL=redis_server.url)
    async with world_on(settings, tmp_path, follow=False) as world:
        partner, entity_id = await world.connected()
        assert (await partner.claim(entity_id, "before")).status_code == 201
        assert await _degraded(world) == 0.0
        redis_server.kill()
        answers = [await partner.claim(entity_id, f"during-{number}") for number in range(10)]
        assert [answer.status_code for answer in answers] == [201] * 10
        assert all("X-RateLimit-Remaining" in answer.headers for answer in answers)
        assert await _degraded(world) == 1.0
        await limiters[0].close()


async def _degraded(world):
    text = await world.scrape()
    (line,) = [
        one for one in text.splitlines() if one.startswith("claim_ledger_rate_limit_degraded ")
    ]
    return float(line.split()[1])
