-- Live becomes silent, silent expires, offers that were not taken in time are closed. ARGV: now, how many of each at most.
-- Returns {{pid, offer id, …} closed, expired members, how many became silent, is there more? (1, 0)}. A closed mark
-- stays, and is returned again, until `lapse`: what PostgreSQL says decides.
if lost then
    return 'LOSS'
end
local limit = tonumber(ARGV[2])
if now - swept > ASLEEP_MS then
    awake = now
    redis.call('HSET', META, 'awake_since', digits(now))
end
redis.call('HSET', META, 'swept', digits(now))

local hushed = {}
if now >= awake + SILENT_MS then
    hushed = redis.call('ZRANGEBYSCORE', BEAT, '-inf', digits(now - SILENT_MS), 'WITHSCORES', 'LIMIT', 0, limit)
    for i = 1, #hushed, 2 do
        local pid = hushed[i]
        redis.call('ZADD', SILENT, hushed[i + 1], pid)
        redis.call('ZREM', BEAT, pid)
        redis.call('ZREM', LIVE, pid)
        redis.call('ZREM', PASSED, pid)
    end
end
local gone = expire(limit)

local closed_now = {}
local found = {}
if not paused then
    found = redis.call('ZRANGEBYSCORE', OFFER, '-inf', digits(now), 'WITHSCORES', 'LIMIT', 0, limit)
end
local since = math.max(awake, resumed)
for i = 1, #found, 2 do
    local pid = found[i]
    local id, seq, told, closed = mark_of(pid)
    -- An offer whose clock ran through an outage or a pause gets its time once more.
    local began = told > 0 and told or tonumber(found[i + 1]) - SILENT_MS
    if began >= since or now >= since + (told > 0 and OFFER_MS or SILENT_MS) or closed >= id then
        if closed < id then
            set_mark(pid, id, seq, told, id)
        end
        local n = #closed_now
        closed_now[n + 1], closed_now[n + 2] = pid, id
    end
end
finish(#hushed > 0 or #closed_now > 0)
local more = #hushed == 2 * limit or #gone == 2 * limit or #found == 2 * limit
return { closed_now, gone, #hushed / 2, more and 1 or 0 }
