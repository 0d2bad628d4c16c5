-- The newest activity of each workspace that is not in the database yet, and its open connections, in one look.
-- ARGV: ids. Returns, for each, {milliseconds or 0, connections, is the idle timer going?}.
local sets = redis.call('SMEMBERS', 'codehub:activity:taken')
sets[#sets + 1] = 'codehub:activity'
local found = {}
for i, id in ipairs(ARGV) do
    local newest = 0
    for _, set in ipairs(sets) do
        newest = math.max(newest, tonumber(redis.call('ZSCORE', set, id) or 0))
    end
    found[i] = {
        newest,
        tonumber(redis.call('GET', 'ws_conn:' .. id) or 0),
        redis.call('EXISTS', 'idle_timer:' .. id),
    }
end
return found
