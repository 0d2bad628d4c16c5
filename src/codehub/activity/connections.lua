-- Keeps `ws_conn:{id}` what the live leases add up to, and `idle_timer:{id}` going when that is nothing.
-- ARGV: what to do; now ms; then
--   renew: instance, lease ms, "flushed ms:round". Returns {was it known?, epoch}. Ends the leases that ran out.
--   set:   instance, entries, msgpacked: {id, connections here, idle seconds (0: no timer), restart the timer? (0, 1)}
--   leave: instance, which has closed everything.
--   reap:  ends the leases that ran out.
local what, now, instance = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local function held(by)
    return at .. 'codehub:proxy:' .. by
end

local function total(id)
    local sum = 0
    for _, by in ipairs(redis.call('ZRANGEBYSCORE', at .. 'codehub:proxies', '(' .. now, '+inf')) do
        local value = redis.call('HGET', held(by), id)
        sum = sum + tonumber(value and string.match(value, '^%d+') or 0)
    end
    return sum
end

local function settle(id, idle, restart)
    local connections, timer = at .. 'ws_conn:' .. id, at .. 'idle_timer:' .. id
    local sum = total(id)
    if sum > 0 then
        redis.call('SET', connections, sum)
        redis.call('DEL', timer)
    elseif redis.call('DEL', connections) == 1 or restart then
        if idle > 0 then
            redis.call('SET', timer, '1', 'EX', idle)
        end
    end
end

local function forget(by)
    local entries = redis.call('HGETALL', held(by))
    redis.call('DEL', held(by))
    redis.call('ZREM', at .. 'codehub:proxies', by)
    redis.call('HDEL', at .. 'codehub:proxies:flushed', by)
    for i = 1, #entries, 2 do
        settle(entries[i], tonumber(string.match(entries[i + 1], ':(%d+)$')), false)
    end
end

local function reap()
    for _, by in ipairs(redis.call('ZRANGEBYSCORE', at .. 'codehub:proxies', '-inf', now)) do
        forget(by)
    end
end

if what == 'renew' then
    local score = redis.call('ZSCORE', at .. 'codehub:proxies', instance)
    local known = score and tonumber(score) > now
    redis.call('ZADD', at .. 'codehub:proxies', now + ARGV[4], instance)
    redis.call('HSET', at .. 'codehub:proxies:flushed', instance, ARGV[5])
    reap()
    return { known and 1 or 0, redis.call('GET', at .. 'codehub:activity:epoch') or '' }
elseif what == 'set' then
    for _, entry in ipairs(cmsgpack.unpack(ARGV[4])) do
        local id, count, idle = entry[1], entry[2], entry[3]
        if count > 0 then
            redis.call('HSET', held(instance), id, count .. ':' .. idle)
        else
            redis.call('HDEL', held(instance), id)
        end
        settle(id, idle, entry[4] == 1)
    end
elseif what == 'leave' then
    forget(instance)
elseif what == 'reap' then
    reap()
end
return {}
