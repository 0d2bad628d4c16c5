-- An offer that PostgreSQL has made. KEYS[10] waiting. ARGV: now, pid, sequence, offer id, epoch.
-- Returns {outcome, what is in `waiting`, if the mark is new}. What is answered ABSENT is closed with that: a later
-- call with the same offer, for a member who has come back since, must not show it.
if lost then
    return 'LOSS'
end
local pid, seq, offer = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if tonumber(ARGV[5]) ~= epoch then
    return { 'other epoch' }
end
local id, marked, told, closed = mark_of(pid)
if closed >= offer or id > offer then
    return { 'closed' }
elseif tonumber(redis.call('ZSCORE', EVENT, pid)) ~= seq then
    if now < math.min(window, opened + SILENT_MS) then
        return { 'returning' }
    end
    set_mark(pid, id, marked, told, offer)
    finish(true)
    return { 'absent' }
elseif id == offer then
    return { 'ok' }
end
local seen = redis.call('ZSCORE', BEAT, pid) or redis.call('ZSCORE', SILENT, pid)
redis.call('ZREM', LIVE, pid)
redis.call('ZREM', PASSED, pid)
redis.call('ZADD', OFFER, digits(tonumber(seen) + SILENT_MS), pid)
set_mark(pid, offer, seq, 0, closed)
log('ready', seq)
finish(true)
return { 'ok', redis.call('GET', KEYS[10]) or '' }
