-- PostgreSQL has lapsed this offer: its mark goes. One who was told is passed over, one who was not is live again.
-- ARGV: now, pid, offer id. Also of an offer that was never marked: a later `mark` is refused.
if lost then
    return 'LOSS'
end
local pid, offer = ARGV[2], tonumber(ARGV[3])
local id, marked, told, closed = mark_of(pid)
closed = math.max(closed, offer)
if id ~= offer then
    set_mark(pid, id, marked, told, closed)
else
    redis.call('ZREM', OFFER, pid)
    set_mark(pid, 0, 0, 0, closed)
    local seq = tonumber(redis.call('ZSCORE', EVENT, pid))
    if seq and redis.call('ZSCORE', BEAT, pid) then
        redis.call('ZADD', told > 0 and PASSED or LIVE, digits(seq), pid)
    end
    if seq and told > 0 then
        log('passed', seq)
    end
end
finish(true)
return 1
