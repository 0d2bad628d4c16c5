-- PostgreSQL has nothing against this sequence: unchecked becomes live, and of two sequences the lower one counts.
-- KEYS[10] heartbeat, KEYS[11] waiting. ARGV: now, pid, sequence, the one in line that the check began with, name as
-- JSON, joined, is the sequence offered a place? ('1', '0'). Returns 1; 0 if the line has changed since, or if it is too
-- late to return to an earlier place: outside the window nobody moves back for another.
if lost then
    return 'LOSS'
end
local pid, seq, expected = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if tonumber(redis.call('ZSCORE', EVENT, pid)) ~= expected then
    return 0
end
local offered = redis.call('ZSCORE', OFFER, pid)
if seq ~= expected then
    if offered or seq > expected or (now >= window and ARGV[7] ~= '1') then
        return 0
    end
    redis.call('ZADD', EVENT, digits(seq), pid)
    redis.call('ZADD', PASSED, 'XX', digits(seq), pid)
end
if not offered and redis.call('ZSCORE', BEAT, pid) and not redis.call('ZSCORE', PASSED, pid) then
    redis.call('ZADD', LIVE, digits(seq), pid)
end
redis.call('SET', KEYS[10], 'alive', 'EX', HEARTBEAT_S)
redis.call('SET', KEYS[11], waiting_text(ARGV[5], seq, ARGV[6]), 'EX', WAITING_S)
finish()
return 1
