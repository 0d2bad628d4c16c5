-- The newest activity of each workspace that is not in the database yet, and its open connections, in one look.
-- ARGV: ids. Returns whether this is the Redis that the epoch was begun with; and of each id {milliseconds or 0,
-- connections, is the idle timer going?}. It writes before it reads: a server that is no primary any more refuses.
redis.call('SET', at .. 'codehub:activity:looked', '1', 'EX', 60)
local epoch = redis.call('GET', at .. 'codehub:activity:epoch') or ''
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local sets = redis.call('SMEMBERS', at .. 'codehub:activity:taken')
sets[#sets + 1] = at .. 'codehub:activity'
local found = {}
for i, id in ipairs(ARGV) do
    local newest = 0
    for _, set in ipairs(sets) do
        newest = math.max(newest, tonumber(redis.call('ZSCORE', set, id) or 0))
    end
    found[i] = {
        newest,
        tonumber(redis.call('GET', at .. 'ws_conn:' .. id) or 0),
        redis.call('EXISTS', at .. 'idle_timer:' .. id),
    }
end
return { string.match(epoch, '^%w+') == run and 1 or 0, found }
