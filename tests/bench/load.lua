-- wrk: sends the prepared requests of a file in turn, each with an id of its own in place of a mark.
-- Arguments: the file, and what ids begin with. Prints its figures as one line of JSON.
local MARK = "@@@@@@@@@@@@@@@@@@@@" -- as wide as an id, so that Content-Length holds
local heads, tails, sent = {}, {}, 0
local prefix

function init(args)
  prefix = args[2]
  for request in io.open(args[1], "rb"):read("*a"):gmatch("([^\30]+)\30") do
    local from, to = request:find(MARK, 1, true)
    heads[#heads + 1] = from and request:sub(1, from - 1) or request
    tails[#tails + 1] = from and request:sub(to + 1) or false
  end
end

function request()
  sent = sent + 1
  local i = (sent - 1) % #heads + 1
  if not tails[i] then return heads[i] end
  return heads[i] .. prefix .. string.format("%012d", sent) .. tails[i]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests": %d, "seconds": %.6f, "refused": %d, "broken": %d, "p50_ms": %.3f, "p99_ms": %.3f}\n',
    summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
