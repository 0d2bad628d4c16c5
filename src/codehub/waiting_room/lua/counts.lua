-- How many wait, in which state, and what the line's meta says. ARGV: now.
if lost then
    return 'LOSS'
end
local totals = redis.call('HMGET', META, 'entered', 'left', 'expired')
return {
    redis.call('ZCARD', EVENT), redis.call('ZCARD', LIVE), redis.call('ZCARD', SILENT), redis.call('ZCARD', PASSED),
    redis.call('ZCARD', OFFER), tonumber(totals[1] or 0), tonumber(totals[2] or 0), tonumber(totals[3] or 0), logn,
    epoch, paused and 1 or 0, lottery and 1 or 0, now < hold and 1 or 0, now < window and 1 or 0,
}
