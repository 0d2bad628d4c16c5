-- Hears of many people of one event, and says where each stands.
-- From KEYS[10]: heartbeat and waiting of each. ARGV: now, then "pid sequence pid sequence …": one argument for all of
-- them, as with hundreds of people each argument more is noticed.
-- Returns {{paused, lottery, eta, logn, opens}, {kind, position, live ahead, deadline, …}, {number, seq, waiting, …} of those
-- for whom another token counts, expired members}. Of a CHECK, the position is the sequence to expect.
if lost then
    return 'LOSS'
end
local pids, asked_for = {}, {}
for pid, seq in string.gmatch(ARGV[2], '(%S+) (%d+)') do
    local n = #pids + 1
    pids[n], asked_for[n] = pid, tonumber(seq)
end
local seqs = redis.call('ZMSCORE', EVENT, unpack(pids))
local beats = redis.call('ZMSCORE', BEAT, unpack(pids))
local answers, others, renewed = {}, {}, {}

local function answer(i, kind, position, ahead, deadline)
    answers[4 * i - 3], answers[4 * i - 2], answers[4 * i - 1], answers[4 * i] = kind, position, ahead, deadline
end

local function renew(i)
    if redis.call('EXPIRE', KEYS[8 + 2 * i], HEARTBEAT_S) == 0 then
        redis.call('SET', KEYS[8 + 2 * i], 'alive', 'EX', HEARTBEAT_S)
    end
    redis.call('EXPIRE', KEYS[9 + 2 * i], WAITING_S)
end

-- Told now: the clock of an offer starts, once; again, if it was told before a pause.
local function tell(pid, seen)
    local id, seq, told, closed = mark_of(pid)
    if paused or closed >= id or (told > 0 and told >= resumed) then
        return
    end
    local interval = math.min(now - seen, SILENT_MS)
    redis.call('ZADD', OFFER, digits(now + math.max(OFFER_MS, 2 * interval) + LATE_MS), pid)
    set_mark(pid, id, seq, now, closed)
end

-- Hears of a member who may be in any state, and says where they stand.
local function hear(i, pid, seq)
    local seen = tonumber(redis.call('ZSCORE', BEAT, pid))
    local back = not seen
    if back then
        seen = tonumber(redis.call('ZSCORE', SILENT, pid))
        redis.call('ZREM', SILENT, pid)
    end
    redis.call('ZADD', BEAT, digits(now), pid)
    renew(i)
    if redis.call('ZSCORE', OFFER, pid) then
        tell(pid, seen)
    elseif back and seen >= window then
        redis.call('ZADD', LIVE, digits(seq), pid)
    end
    local kind, position, ahead, deadline = standing(pid)
    if kind == CHECK then
        return answer(i, CHECK, seq, 0, 0)
    end
    return answer(i, kind, position, ahead, deadline)
end

-- All that is not a live member with this sequence. Reads again: an earlier one of this call may be the same person.
local function rare(i, pid, asked)
    local seq = tonumber(redis.call('ZSCORE', EVENT, pid))
    local may_return = now < window and asked < epoch * EPOCH
    if not seq then
        if not may_return then
            return answer(i, EXPIRED, 0, 0, 0)
        end
        redis.call('ZADD', EVENT, digits(asked), pid)
        redis.call('ZADD', BEAT, digits(now), pid)
        return answer(i, CHECK, asked, 0, 0)
    elseif seq > asked and not redis.call('ZSCORE', OFFER, pid) then
        return answer(i, may_return and CHECK or EXPIRED, seq, 0, 0)
    elseif seq > asked and not may_return then
        return answer(i, EXPIRED, 0, 0, 0)
    elseif seq ~= asked then
        local n = #others
        others[n + 1], others[n + 2], others[n + 3] = i, seq, redis.call('GET', KEYS[9 + 2 * i]) or ''
    end
    return hear(i, pid, seq)
end

for i, pid in ipairs(pids) do
    local asked = asked_for[i]
    local ahead = seqs[i] and beats[i] and tonumber(seqs[i]) == asked and redis.call('ZRANK', LIVE, pid)
    if ahead then
        local n = #renewed
        renewed[n + 1], renewed[n + 2] = ARGV[1], pid
        renew(i)
        answer(i, WAITING, redis.call('ZRANK', EVENT, pid) + 1, ahead, 0)
    else
        rare(i, pid, asked)
    end
end
if #renewed > 0 then
    redis.call('ZADD', BEAT, unpack(renewed))
end
local gone = reap()
finish()
return { head(), answers, others, gone }
