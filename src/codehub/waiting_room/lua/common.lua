-- What every script begins with. Before it stand the settings (`scripts.py`): SILENT_MS, HEARTBEAT_MS, OFFER_MS,
-- HEARTBEAT_S, WAITING_S, EVENT_S. KEYS[1..9] are the event's (`keys.py`), ARGV[1] is the time in milliseconds.
--
-- A member of EVENT is in BEAT or in SILENT. One of BEAT is in LIVE, in PASSED, has a mark in OFFER, or is unchecked: in
-- none of them. Unchecked are also those in SILENT who were last heard of before the window's end: they come back by way
-- of a check.
local EVENT, LIVE, PASSED, BEAT, SILENT = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local OFFER, OFFERID, META, LOG = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local LATE_MS = 5000 -- an offer is closed so much later than its person was told: what they sent in time may be under way
local ASLEEP_MS = 10000 -- if nothing swept for so long, it was an outage, and nobody's silence counts
local EPOCH = 4294967296 -- a sequence is epoch * 2^32 + number
local now = tonumber(ARGV[1])

local meta = redis.call('HMGET', META, 'run', 'epoch', 'lottery', 'hold', 'window', 'paused', 'awake_since', 'swept',
    'logn', 'fresh', 'resumed', 'opened', 'eta', 'opens')
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local lost = meta[1] ~= run -- false, if there is none
local epoch, lottery, hold = tonumber(meta[2] or 0), meta[3] == '1', tonumber(meta[4] or 0)
local window, paused = tonumber(meta[5] or 0), meta[6] == '1'
local awake, swept = tonumber(meta[7] or 0), tonumber(meta[8] or 0)
local logged, resumed, opened = tonumber(meta[9] or 0), tonumber(meta[11] or 0), tonumber(meta[12] or 0)
local logn = logged

local function digits(number)
    return string.format('%.0f', number)
end

local function log(kind, seq)
    logn = logn + 1
    redis.call('XADD', LOG, 'MAXLEN', '~', 10000, digits(logn) .. '-0', kind, digits(seq))
end

-- Every key goes EVENT_S after the last activity; said again when a minute of it is used up.
local function finish(created)
    if logn ~= logged then
        redis.call('HSET', META, 'logn', digits(logn))
    end
    local fresh = tonumber(meta[10] or 0)
    if created or now - fresh > 60000 or now < fresh then
        redis.call('HSET', META, 'fresh', digits(now))
        for i = 1, 9 do
            redis.call('EXPIRE', KEYS[i], EVENT_S)
        end
    end
end

-- Members who were not heard of for a heartbeat go, their marks stay. Returns {pid, seq, pid, seq, …}: what they have
-- under keys of their own is removed by a second call.
local function expire(limit)
    local gone = {}
    if now < awake + HEARTBEAT_MS then
        return gone
    end
    local overdue = redis.call('ZRANGEBYSCORE', SILENT, '-inf', digits(now - HEARTBEAT_MS), 'LIMIT', 0, limit)
    for i, pid in ipairs(overdue) do
        local seq = redis.call('ZSCORE', EVENT, pid)
        redis.call('ZREM', EVENT, pid)
        redis.call('ZREM', SILENT, pid)
        log('expired', tonumber(seq))
        gone[2 * i - 1], gone[2 * i] = pid, tonumber(seq)
    end
    if #overdue > 0 then
        redis.call('HINCRBY', META, 'expired', #overdue)
    end
    return gone
end

-- What requests do beside their own work: a few, and only while the sweep is awake to see an outage.
local function reap()
    if now - swept > ASLEEP_MS then
        return {}
    end
    return expire(8)
end

local function mark_of(pid)
    local entry = redis.call('HGET', OFFERID, pid)
    if not entry then
        return 0, 0, 0, 0
    end
    local id, seq, told, closed = string.match(entry, '(%d+) (%d+) (%d+) (%d+)')
    return tonumber(id), tonumber(seq), tonumber(told), tonumber(closed)
end

local function set_mark(pid, id, seq, told, closed)
    redis.call('HSET', OFFERID, pid, table.concat({ digits(id), digits(seq), digits(told), digits(closed) }, ' '))
end

local function waiting_text(name, seq, joined)
    return '{"user_id":' .. name .. ',"seq":' .. digits(seq) .. ',"joined":' .. joined .. '}'
end

-- Kinds of a standing; `line.py` has the same.
local WAITING, PASSED_OVER, READY, NOT_READY, CHECK, EXPIRED = 0, 1, 2, 3, 4, 5

-- kind, position, live ahead, deadline (0: none) of a member. Changes nothing.
local function standing(pid)
    local position = redis.call('ZRANK', EVENT, pid) + 1
    local deadline = redis.call('ZSCORE', OFFER, pid)
    if deadline then
        local id, _, told, closed = mark_of(pid)
        if paused or closed >= id then
            return NOT_READY, position, 0, 0
        end
        return READY, position, 0, told > 0 and tonumber(deadline) - LATE_MS or 0
    end
    local ahead = redis.call('ZRANK', LIVE, pid)
    if ahead then
        return WAITING, position, ahead, 0
    end
    ahead = redis.call('ZRANK', PASSED, pid)
    if ahead then
        return PASSED_OVER, position, redis.call('ZCARD', LIVE) + ahead, 0
    end
    return CHECK, position, 0, 0
end

-- What every standing shares.
local function head()
    return { paused and 1 or 0, lottery and 1 or 0, meta[13] or '', logn, tonumber(meta[14] or 0) }
end
