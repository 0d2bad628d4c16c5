-- name: find_event
SELECT *, codehub_user_name(owner_id) AS owner FROM waiting_events WHERE id = $1;

-- name: lock_event
-- Everything that changes a place goes one after the other, by event.
SELECT *, codehub_user_name(owner_id) AS owner FROM waiting_events WHERE id = $1 FOR NO KEY UPDATE;

-- name: page_events
SELECT *, codehub_user_name(owner_id) AS owner FROM waiting_events
WHERE ($1::text IS NULL OR owner_id = (SELECT codehub_user_id($1))) AND id > $2
ORDER BY id LIMIT $3;

-- name: count_events
SELECT count(*) FROM waiting_events WHERE owner_id = (SELECT codehub_user_id($1));

-- name: one_at_a_time
-- Events of one owner are made one after the other: their limit is exact.
SELECT pg_advisory_xact_lock(7235420, hashtext($1));

-- name: add_event
INSERT INTO waiting_events (id, owner_id, capacity, admission_rate, opens_at, "order", place_lease_seconds, paused, draining,
                            secret, created_at, updated_at)
VALUES ($1, codehub_user_id($2), $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
ON CONFLICT (id) DO NOTHING
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: change_event
UPDATE waiting_events
SET capacity = $2, admission_rate = $3, opens_at = $4, "order" = $5, place_lease_seconds = $6, paused = $7, draining = $8,
    drawn = $9, next_grant_at = $10, updated_at = $11
WHERE id = $1
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: watched
-- What the pump looks at, with what it needs to know whether there is anything to do.
SELECT e.*, codehub_user_name(e.owner_id) AS owner,
       (SELECT count(*) FROM waiting_places p WHERE p.event_id = e.id AND p.state = 'offered') AS offered,
       (SELECT count(*) FROM waiting_places p WHERE p.event_id = e.id AND p.state IN ('reserved', 'held')) AS placed
FROM waiting_events e
WHERE e.activity <> 'idle' AND e.id > $1
ORDER BY e.id LIMIT $2;

-- name: watch
-- A person is in line. Nothing is written where that is known.
UPDATE waiting_events SET activity = 'busy' WHERE id = $1 AND activity <> 'busy';

-- name: watch_lab
-- The same, and admission is told: the version keeps a look from before from clearing it.
UPDATE waiting_events
SET activity = 'busy', has_live_waiters = true, waiters_version = waiters_version + 1, waiters_seen_at = $2
WHERE id = $1;

-- name: rest
-- Fenced by what was read: a join meanwhile has made it busy.
UPDATE waiting_events
SET activity = $3, lost_line = lost_line AND $3 <> 'idle'
WHERE id = $1 AND activity = $2 AND epoch = $4
  AND NOT EXISTS (SELECT FROM waiting_places p WHERE p.event_id = $1 AND (p.state = 'offered' OR NOT p.noted))
RETURNING 1;

-- name: saw_waiters
UPDATE waiting_events SET has_live_waiters = true, waiters_seen_at = $2 WHERE id = $1;

-- name: saw_no_waiters
UPDATE waiting_events SET has_live_waiters = false, waiters_seen_at = $2 WHERE id = $1 AND waiters_version = $3;

-- name: draw
UPDATE waiting_events SET drawn = true WHERE id = $1 AND NOT drawn;

-- name: set_next_grant
UPDATE waiting_events SET next_grant_at = $2 WHERE id = $1;

-- name: reopen
UPDATE waiting_events SET epoch = $2, opened_at = $3, lost_line = $4 WHERE id = $1;

-- name: forget_noted
-- Redis may have lost what it was told of these. The version fences a word about it that is on its way.
UPDATE waiting_places SET noted = false, version = version + 1
WHERE event_id = $1 AND (state <> 'none' OR changed_at >= $2);

-- name: find_place
SELECT * FROM waiting_places WHERE event_id = $1 AND pid = $2;

-- name: find_places
SELECT * FROM waiting_places WHERE event_id = $1 AND pid = ANY ($2::text[]);

-- name: place_of_person
SELECT * FROM waiting_places WHERE event_id = $1 AND person = $2 AND state IN ('reserved', 'held');

-- name: lab_state
-- What admission asks, in one statement: it holds the lock that all starts wait for.
SELECT e.has_live_waiters, e.waiters_seen_at, mine.pid, mine.seq,
       (SELECT count(*) FROM waiting_places p WHERE p.event_id = e.id AND p.state IN ('offered', 'reserved')) AS promised
FROM waiting_events e
LEFT JOIN waiting_places mine
    ON mine.event_id = e.id AND mine.state = 'reserved' AND mine.expires_at > $2 AND mine.person = codehub_user_id($1)
WHERE e.id = 'lab';

-- name: save_place
INSERT INTO waiting_places AS p (event_id, pid, person, name, state, seq, offer_id, gone_seq, noted, offered_at, expires_at,
                                 workspace_id, run_id, changed_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1)
ON CONFLICT (event_id, pid) DO UPDATE
SET person = coalesce(excluded.person, p.person), name = coalesce(excluded.name, p.name), state = excluded.state,
    seq = excluded.seq, offer_id = excluded.offer_id, gone_seq = excluded.gone_seq, noted = excluded.noted,
    offered_at = excluded.offered_at, expires_at = excluded.expires_at, workspace_id = excluded.workspace_id,
    run_id = excluded.run_id, changed_at = excluded.changed_at, version = p.version + 1
RETURNING *;

-- name: new_offer
SELECT nextval('waiting_offer_ids');

-- name: note
-- Only what is still as it was when Redis was told.
UPDATE waiting_places p SET noted = true
FROM unnest($2::text[], $3::bigint[]) AS told (pid, version), waiting_events e
WHERE p.event_id = $1 AND p.pid = told.pid AND p.version = told.version AND e.id = p.event_id AND e.epoch = $4;

-- name: unnoted
SELECT * FROM waiting_places WHERE event_id = $1 AND NOT noted ORDER BY changed_at LIMIT $2;

-- name: over
-- Places whose time is up, of all events.
SELECT * FROM waiting_places WHERE state IN ('reserved', 'held') AND expires_at <= $1 ORDER BY expires_at LIMIT $2;

-- name: bound
-- Places that a workspace or a run holds, of all events, some at a time.
SELECT p.*, e.place_lease_seconds FROM waiting_places p JOIN waiting_events e ON e.id = p.event_id
WHERE p.state = 'held' AND (p.event_id, p.pid) > ($1, $2) AND (p.workspace_id IS NOT NULL OR p.run_id IS NOT NULL)
ORDER BY p.event_id, p.pid LIMIT $3;

-- name: renew_lease
UPDATE waiting_places SET expires_at = $4 WHERE event_id = $1 AND pid = $2 AND offer_id = $3 AND state = 'held';

-- name: count_places
SELECT count(*) FILTER (WHERE state = 'offered') AS offered, count(*) FILTER (WHERE state = 'reserved') AS reserved,
       count(*) FILTER (WHERE state = 'held') AS held
FROM waiting_places WHERE event_id = $1 AND state <> 'none';

-- name: taken
SELECT offered_at FROM waiting_places WHERE event_id = $1 AND state <> 'none';

-- name: clock
SELECT clock_timestamp();

-- name: age
SELECT extract(epoch FROM clock_timestamp() - $1::timestamptz)::float8;

-- name: nudge
-- A place may be free, or something is to be told to Redis: the pump looks now.
SELECT pg_notify('codehub_waiting', '');

-- name: account
-- The id of a person by their name.
SELECT id FROM users WHERE name = $1;

-- name: accounts
SELECT id, name FROM users WHERE name = ANY ($1::text[]);

-- name: events_of_person
-- Where a person may wait, or has a row.
SELECT id FROM waiting_events e
WHERE activity <> 'idle' OR EXISTS (SELECT FROM waiting_places p WHERE p.event_id = e.id AND p.person = $1)
ORDER BY id;

-- name: unbar
DELETE FROM waiting_places WHERE person = codehub_user_id($1) AND state = 'none' AND gone_seq = $2;

-- name: forget_person
UPDATE waiting_places
SET name = NULL, person = CASE WHEN person = $1 THEN person END, state = CASE WHEN person = $1 THEN state ELSE 'none' END
WHERE person = $1 OR person = ANY ($3::text[]) OR name = ANY ($2::text[]);

-- name: prune
-- Rows that only say what is over, of events whose line has been empty for long: no token of it is of use any more.
DELETE FROM waiting_places WHERE (event_id, pid) IN (
    SELECT p.event_id, p.pid FROM waiting_places p JOIN waiting_events e ON e.id = p.event_id
    WHERE p.state = 'none' AND p.noted AND p.changed_at < $1 AND e.activity = 'idle'
    LIMIT $2
);

-- name: entered_lately
-- Of those who were offered a place: a lapsed offer leaves neither a state nor a sequence that is over.
SELECT count(*) AS people, min(offered_at) AS since
FROM waiting_places
WHERE event_id = $1 AND offered_at > $2 AND person IS NOT NULL
  AND (state IN ('reserved', 'held') OR (state = 'none' AND gone_seq >= seq));
