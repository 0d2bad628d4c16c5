-- name: all
SELECT name, status, codehub_actor_name(actor) AS actor, attempts, cancelled, steps, lines, problem, asked_at, started_at, ended_at
FROM ide_installs ORDER BY name;

-- name: ask
-- Nothing is returned when one is under way already.
INSERT INTO ide_installs AS i (name, status, actor, asked_at) VALUES ($1, 'WAITING', codehub_actor_id($2), $3)
ON CONFLICT (name) DO UPDATE
SET status = 'WAITING', actor = excluded.actor, asked_at = excluded.asked_at, epoch = NULL, attempts = 0, cancelled = false,
    steps = '[]', lines = '[]', problem = NULL, started_at = NULL, ended_at = NULL
WHERE i.status NOT IN ('WAITING', 'RUNNING')
RETURNING name;

-- name: cancel
-- What has not begun ends here; the leader ends the rest.
UPDATE ide_installs
SET cancelled = true, status = CASE status WHEN 'WAITING' THEN 'CANCELLED' ELSE status END,
    ended_at = CASE status WHEN 'WAITING' THEN $2 ELSE ended_at END
WHERE name = $1 AND status IN ('WAITING', 'RUNNING') AND NOT cancelled
RETURNING name;

-- name: wake_coordinator
SELECT pg_notify('codehub_requests', '');

-- name: put_back
-- What an earlier leader left, and what we could not save: it goes on, or ends if that was asked for.
UPDATE ide_installs
SET status = CASE WHEN cancelled THEN 'CANCELLED' ELSE 'WAITING' END, epoch = NULL, ended_at = CASE WHEN cancelled THEN $3::timestamptz END
WHERE status = 'RUNNING' AND (epoch <> $1 OR NOT (name = ANY ($2::text[])))
RETURNING name;

-- name: give_up
UPDATE ide_installs SET status = 'FAILED', problem = $3, ended_at = $2 WHERE status = 'WAITING' AND attempts >= $1;

-- name: claim
UPDATE ide_installs
SET status = 'RUNNING', epoch = $1, attempts = attempts + 1, started_at = coalesce(started_at, $2), steps = '[]', lines = '[]'
WHERE status = 'WAITING' AND NOT EXISTS (SELECT FROM ide_installs WHERE status = 'RUNNING')
  AND name = (SELECT name FROM ide_installs WHERE status = 'WAITING' ORDER BY asked_at, name LIMIT 1)
RETURNING name;

-- name: progress
-- Whether it goes on; nothing is returned when it is not ours any more.
UPDATE ide_installs SET steps = $3, lines = $4 WHERE name = $1 AND status = 'RUNNING' AND epoch = $2 RETURNING NOT cancelled;

-- name: finish
UPDATE ide_installs SET status = $3, problem = $4, steps = $5, lines = $6, ended_at = $7
WHERE name = $1 AND status = 'RUNNING' AND epoch = $2
RETURNING name;
