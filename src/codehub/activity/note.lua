-- What a proxy saw, for explaining. A listing that no client asked for within the last minute, at any proxy, is a
-- person's and counts; the same one again is a refresh.
-- ARGV: entries, msgpacked: {id, input ms or 0, output ms or 0, {kind = n}, {{listing, first ms or 0, last ms}}}; seconds kept;
-- milliseconds within which a listing is the same again.
local function newest(key, field, ms)
    if ms > 0 and ms > tonumber(redis.call('HGET', key, field) or 0) then
        redis.call('HSET', key, field, string.format('%.0f', ms))
    end
end

for _, entry in ipairs(cmsgpack.unpack(ARGV[1])) do
    local id, input = entry[1], entry[2]
    local key, listings = at .. 'codehub:activity:of:' .. id, at .. 'codehub:activity:listings:' .. id
    for kind, count in pairs(entry[4]) do
        redis.call('HINCRBY', key, kind, count)
    end
    for _, listing in ipairs(entry[5]) do
        local before = tonumber(redis.call('HGET', listings, listing[1]) or 0)
        if listing[2] == 0 then
            before = 0 -- counted already, by the proxy that saw it before
        elseif listing[2] - before > tonumber(ARGV[3]) then
            redis.call('HINCRBY', key, 'browsing', 1)
            redis.call('ZADD', at .. 'codehub:activity', 'GT', listing[2], id)
            input = math.max(input, listing[2])
        else
            redis.call('HINCRBY', key, 'refresh', 1)
        end
        if listing[3] > before then
            redis.call('HSET', listings, listing[1], string.format('%.0f', listing[3]))
        end
        redis.call('PEXPIRE', listings, 2 * ARGV[3])
    end
    newest(key, 'last_input_at', input)
    newest(key, 'last_output_at', entry[3])
    redis.call('EXPIRE', key, ARGV[2])
end
