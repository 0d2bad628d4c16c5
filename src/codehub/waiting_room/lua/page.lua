-- A part of the line, in order. ARGV: now, how many come before it, how many at most.
-- Returns {{pid, seq, …}, live, passed, offered, silent, beating}: of each state the scores of these members, or nothing.
if lost then
    return 'LOSS'
end
local start = tonumber(ARGV[2])
local members = redis.call('ZRANGE', EVENT, start, start + tonumber(ARGV[3]) - 1, 'WITHSCORES')
local pids = {}
for i = 1, #members, 2 do
    pids[#pids + 1] = members[i]
end
if #pids == 0 then
    return {}
end
local page = { members }
for i, key in ipairs({ LIVE, PASSED, OFFER, SILENT, BEAT }) do
    page[i + 1] = redis.call('ZMSCORE', key, unpack(pids))
end
return page
