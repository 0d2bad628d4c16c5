-- Removes a member and their offer, up to this sequence: entered, left, or stale.
-- KEYS[10] heartbeat, KEYS[11] waiting, KEYS[12] personal stream, if it shall be told. ARGV: now, pid, sequence, why.
-- Returns {was there one? (1, 0), expired members}.
if lost then
    return 'LOSS'
end
local pid, most, why = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local id, marked = mark_of(pid)
if id > 0 and marked <= most then
    redis.call('ZREM', OFFER, pid)
    redis.call('HDEL', OFFERID, pid)
end
local seq = tonumber(redis.call('ZSCORE', EVENT, pid))
if not seq or seq <= most then
    redis.call('DEL', KEYS[10], KEYS[11])
end
local found = seq and seq <= most
if found then
    for i = 1, 5 do
        redis.call('ZREM', KEYS[i], pid)
    end
    if why == 'stale' then
        log('left', seq)
    else
        log(why, seq)
        redis.call('HINCRBY', META, why, 1)
    end
    if KEYS[12] then
        redis.call('XADD', KEYS[12], 'MAXLEN', '~', 100, '*', why, digits(seq))
        redis.call('EXPIRE', KEYS[12], EVENT_S)
    end
end
local gone = reap()
finish()
return { found and 1 or 0, gone }
