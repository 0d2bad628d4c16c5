-- What PostgreSQL says about the event. ARGV: now, paused? ('1', '0'), lottery that has not opened? ('1', '0'), eta, when it
-- opens in milliseconds or 0.
if lost then
    return 'LOSS'
end
if (ARGV[2] == '1') ~= paused then
    redis.call('HSET', META, 'paused', ARGV[2])
    if paused then
        redis.call('HSET', META, 'resumed', digits(now))
    end
    log(paused and 'resumed' or 'paused', 0)
end
if (ARGV[3] == '1') ~= lottery then
    redis.call('HSET', META, 'lottery', ARGV[3])
    if lottery then
        log('opened', 0)
    elseif tonumber(redis.call('HGET', META, 'n')) < 2147483648 then
        redis.call('HSET', META, 'n', 2147483648) -- those who come later go behind all who were drawn
    end
end
if ARGV[4] ~= meta[13] then
    redis.call('HSET', META, 'eta', ARGV[4])
end
if ARGV[5] ~= (meta[14] or '0') then
    redis.call('HSET', META, 'opens', ARGV[5])
    log('scheduled', 0)
end
finish()
return 1
