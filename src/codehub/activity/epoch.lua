-- Which Redis this is, of those that may have the keys one after the other; and the epoch that it knows.
return { string.match(redis.call('INFO', 'server'), 'run_id:(%w+)'), redis.call('GET', at .. 'codehub:activity:epoch') or '' }
