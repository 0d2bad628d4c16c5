-- A new epoch: after a loss, or for the first time. ARGV: now, epoch, hold ms, window ms, lottery? ('1', '0').
-- Marks go, as PostgreSQL marks what it has anew; their members are unchecked until then. Returns 1; 0 if this epoch,
-- or a later one, was open already.
local new = tonumber(ARGV[2])
if meta[2] and epoch >= new then
    return 0
end
local held, returning = tonumber(ARGV[3]), now + tonumber(ARGV[4])
if not lost then
    -- Nothing was lost: PostgreSQL has caught up with this Redis, as it came from a backup.
    held, returning = 0, window
elseif redis.call('ZCARD', EVENT) > 0 then
    -- The line survived: those who were lost with the last second ask again soon. After an emptying just before, its hold
    -- goes on: not all of them are back yet.
    held = math.min(held, 10000)
end
redis.call('DEL', OFFER, OFFERID)
redis.call('HSET', META, 'run', run, 'epoch', digits(new), 'n', ARGV[5] == '1' and 2147483648 or 0, 'lottery', ARGV[5],
    'hold', digits(math.max(hold, now + held)), 'window', digits(returning), 'awake_since', digits(now), 'swept',
    digits(now), 'opened', digits(now))
logn = math.max(logn, new * EPOCH) -- above every earlier one, also if all was lost
log('reset', 0)
finish(true)
return 1
