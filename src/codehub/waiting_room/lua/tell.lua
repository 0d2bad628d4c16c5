-- Entries in personal streams. KEYS: the streams. ARGV: for how many seconds they are kept, then kind and sequence of each.
for i, key in ipairs(KEYS) do
    redis.call('XADD', key, 'MAXLEN', '~', 100, '*', ARGV[2 * i], ARGV[2 * i + 1])
    redis.call('EXPIRE', key, ARGV[1])
end
return #KEYS
