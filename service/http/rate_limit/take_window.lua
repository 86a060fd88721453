-- Takes a place in each of the moving windows KEYS, as the storage of `limits` keeps them: a list of
-- moments in seconds, newest first. ARGV[1]: window in seconds; ARGV[i + 1]: places of KEYS[i].
-- Returns four integers a key: admitted (0 or 1), places taken, the moment at which the oldest
-- leaves (epoch milliseconds), milliseconds until then.
--
-- The moments are Redis's own, so the clocks of the workers do not matter: with `limits`, which
-- sends each worker's time.time(), a worker that runs ahead would free places too early. Redis's
-- clock can go back, too, or a replica takes over whose clock is behind. Places that lie in the future
-- then count as taken now: they would be kept for so much longer, and those taken since behind them.
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local window = tonumber(ARGV[1])
local answers = {}
for i, key in ipairs(KEYS) do
  -- What is no list of moments somebody else put there; it would stop the windows of all others.
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'list' and kind ~= 'none' then
    redis.call('DEL', key)
  end
  local index = 0
  local newest = redis.call('LINDEX', key, index)
  while newest and (tonumber(newest) or 0) > now do
    redis.call('LSET', key, index, string.format('%.6f', now))
    index = index + 1
    newest = redis.call('LINDEX', key, index)
  end
  local oldest = redis.call('LINDEX', key, -1)
  while oldest and (tonumber(oldest) or 0) <= now - window do
    redis.call('RPOP', key)
    oldest = redis.call('LINDEX', key, -1)
  end
  local taken = redis.call('LLEN', key)
  local admitted = 0
  if taken < tonumber(ARGV[i + 1]) then
    admitted = 1
    taken = redis.call('LPUSH', key, string.format('%.6f', now))
    redis.call('PEXPIRE', key, math.ceil(window * 1000))
  end
  -- Whatever somebody else put there, nobody waits longer than one window.
  local leaves = math.min(now, tonumber(oldest or now)) + window
  answers[#answers + 1] = admitted
  answers[#answers + 1] = taken
  answers[#answers + 1] = math.ceil(leaves * 1000)
  answers[#answers + 1] = math.ceil((leaves - now) * 1000)
end
return answers
