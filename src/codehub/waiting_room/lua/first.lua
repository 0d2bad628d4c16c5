-- Who is next: the first of the live, or, if there is none, of those who were passed over. ARGV: now, how many.
-- Returns {pid, seq, …}; nothing during a hold or a pause, and before a lottery opens.
if lost then
    return 'LOSS'
elseif now < hold or paused or lottery then
    return {}
end
local last = tonumber(ARGV[2]) - 1
local found = redis.call('ZRANGE', LIVE, 0, last, 'WITHSCORES')
if #found == 0 then
    found = redis.call('ZRANGE', PASSED, 0, last, 'WITHSCORES')
end
return found
