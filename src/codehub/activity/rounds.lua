-- The coordinator's questions to the proxies: each is a round, and says who is about to sleep.
-- ARGV: what to do; then
--   ask:    seconds that the answer is good, ids. Begins a round; without ids, those of the last one stay.
--   asked:  nothing. Which round it is, and who is about to sleep in it.
--   finish: the name of a set that was taken over, and is in the database now.
local round, about = at .. 'codehub:activity:round', at .. 'codehub:activity:about_to_sleep'

if ARGV[1] == 'ask' then
    if #ARGV > 2 then
        redis.call('DEL', about)
        for i = 3, #ARGV do
            redis.call('SADD', about, ARGV[i])
        end
        redis.call('EXPIRE', about, ARGV[2])
    end
    return redis.call('INCR', round)
elseif ARGV[1] == 'asked' then
    return { tonumber(redis.call('GET', round) or 0), redis.call('SMEMBERS', about) }
elseif ARGV[1] == 'finish' then
    redis.call('DEL', ARGV[2])
    redis.call('SREM', at .. 'codehub:activity:taken', ARGV[2])
end
return 0
