-- The entries of the log after a number. ARGV: now, the number (below 0: from the oldest on), how many at most.
-- Returns {is anything missing? (1, 0), entries}.
if lost then
    return 'LOSS'
end
local after = tonumber(ARGV[2])
local oldest = redis.call('XRANGE', LOG, '-', '+', 'COUNT', 1)[1]
local first = oldest and tonumber(string.match(oldest[1], '^%d+')) or logn + 1
if after < 0 then
    after = first - 1
end
if after > logn or after + 1 < first then
    return { 1, {} }
end
return { 0, redis.call('XRANGE', LOG, digits(after + 1), '+', 'COUNT', ARGV[3]) }
