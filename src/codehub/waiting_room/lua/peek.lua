-- Where one person stands, without hearing of them. ARGV: now, pid, sequence, is it an act? ('1', '0').
-- An act makes one who was passed over live again. Returns as `status` does, or nothing for one who is not in line.
if lost then
    return 'LOSS'
end
local pid = ARGV[2]
local seq = tonumber(redis.call('ZSCORE', EVENT, pid))
if not seq or seq > tonumber(ARGV[3]) then
    return {}
end
if ARGV[4] == '1' and redis.call('ZREM', PASSED, pid) == 1 then
    redis.call('ZADD', LIVE, digits(seq), pid)
end
local answer = { standing(pid) }
local gone = reap()
finish()
return { head(), answer, {}, gone }
