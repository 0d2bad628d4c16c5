-- Removes what expired members had under keys of their own, unless they have joined again since.
-- KEYS[1] the event's members, then heartbeat and waiting of each. ARGV: the pids. Returns what was in `waiting` of each.
local texts = {}
for i, pid in ipairs(ARGV) do
    texts[i] = ''
    if not redis.call('ZSCORE', KEYS[1], pid) then
        texts[i] = redis.call('GET', KEYS[2 * i + 1]) or ''
        redis.call('DEL', KEYS[2 * i], KEYS[2 * i + 1])
    end
end
return texts
