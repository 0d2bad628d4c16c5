-- Take the set of activities over, whole and at once: what is written from here on goes into a new one.
-- ARGV: a name that was never used. Returns all that are taken over and not finished, older ones first come from a tick
-- that was cut off. A client of a Cluster that has not heard the answer asks again: what it took the first time stays.
if redis.call('EXISTS', ARGV[1]) == 0 and redis.call('EXISTS', at .. 'codehub:activity') == 1 then
    redis.call('RENAME', at .. 'codehub:activity', ARGV[1])
    redis.call('SADD', at .. 'codehub:activity:taken', ARGV[1])
end
return redis.call('SMEMBERS', at .. 'codehub:activity:taken')
