-- The sequence that this person has, else a new one; live in any case, as joining is an act.
-- KEYS[10] heartbeat, KEYS[11] waiting. ARGV: now, pid, name as JSON, number in the lottery or ''.
-- Returns {seq, is it new? (1, 0), what is in `waiting`, expired members}.
if lost then
    return 'LOSS'
end
local pid = ARGV[2]
local seq = tonumber(redis.call('ZSCORE', EVENT, pid))
local new = not seq
if new then
    if lottery and ARGV[4] ~= '' then
        seq = EPOCH + tonumber(ARGV[4])
    else
        seq = epoch * EPOCH + redis.call('HINCRBY', META, 'n', 1)
    end
    redis.call('ZADD', EVENT, digits(seq), pid)
    redis.call('ZADD', LIVE, digits(seq), pid)
else
    redis.call('ZREM', SILENT, pid)
    if not redis.call('ZSCORE', OFFER, pid) then
        redis.call('ZREM', PASSED, pid)
        redis.call('ZADD', LIVE, digits(seq), pid)
    end
end
redis.call('ZADD', BEAT, digits(now), pid)
redis.call('SET', KEYS[10], 'alive', 'EX', HEARTBEAT_S)
local text = not new and redis.call('GET', KEYS[11]) or waiting_text(ARGV[3], seq, ARGV[1])
redis.call('SET', KEYS[11], text, 'EX', WAITING_S)
local gone = reap()
finish(new and redis.call('ZCARD', EVENT) == 1)
return { seq, new and 1 or 0, text, gone }
