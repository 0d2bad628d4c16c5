-- name: count_anew
-- When a leader begins: what was missed, as by a restore from a backup, is put right. One statement, so one snapshot: a
-- change that it does not see is not counted yet, and its line stays.
WITH gone AS (
    DELETE FROM counter_changes
), counted AS (
    SELECT 'phase:' || phase AS name, count(*) AS value FROM workspaces WHERE deleted_at IS NULL GROUP BY phase
    UNION ALL
    SELECT 'archive_bytes', coalesce(sum(size), 0)::bigint FROM restore_points
), cleared AS (
    DELETE FROM counters WHERE name NOT IN (SELECT name FROM counted)
)
INSERT INTO counters SELECT name, value FROM counted
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: add_up
WITH gone AS (DELETE FROM counter_changes RETURNING name, change)
INSERT INTO counters SELECT name, sum(change) FROM gone GROUP BY name
ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value;

-- name: counters
SELECT name, value FROM counters;

-- name: active
-- By the index of what runs, of which there are as many as the machine bears.
SELECT count(*) AS workspaces, count(DISTINCT owner_id) AS people FROM workspaces
WHERE observed_status = 'RUNNING' AND last_access_at > $1;

-- name: wakes
-- From the request to its running, of those that slept: what had to be made or restored first is no wake.
SELECT extract(epoch FROM s.at - asked.at)::float8 AS seconds
FROM workspace_history s
CROSS JOIN LATERAL (
    SELECT r.at, r.code FROM workspace_history r
    WHERE r.workspace_id = s.workspace_id AND r.id < s.id
      AND r.code IN ('woken', 'start_requested', 'created', 'undelete_requested', 'recover_requested', 'restore_requested',
                     'archive_restore_requested', 'provisioned', 'restored', 'started', 'ide_ended', 'ide_gone')
    ORDER BY r.id DESC LIMIT 1
) asked
WHERE s.at > $1 AND s.at <= $2 AND s.code = 'started' AND asked.code IN ('woken', 'start_requested') AND asked.at <= s.at
LIMIT $3;

-- name: newest
SELECT max(taken_at) FROM samples WHERE resolution = 60 AND at = (SELECT max(at) FROM samples WHERE resolution = 60);

-- name: write
INSERT INTO samples (resolution, at, taken_at, minutes, running, asleep, stored, pending, broken, active_workspaces,
                     active_people, waiting, archive_bytes, disk_free_bytes, loop_lag_seconds, slowest_loop, wakes)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
ON CONFLICT (resolution, at) DO UPDATE
SET taken_at = excluded.taken_at, minutes = excluded.minutes, running = excluded.running, asleep = excluded.asleep,
    stored = excluded.stored, pending = excluded.pending, broken = excluded.broken,
    active_workspaces = excluded.active_workspaces, active_people = excluded.active_people, waiting = excluded.waiting,
    archive_bytes = excluded.archive_bytes, disk_free_bytes = excluded.disk_free_bytes,
    loop_lag_seconds = excluded.loop_lag_seconds, slowest_loop = excluded.slowest_loop, wakes = excluded.wakes;

-- name: between
-- The newest first, as many as are asked for.
SELECT at, taken_at, minutes, running, asleep, stored, pending, broken, active_workspaces, active_people, waiting,
       archive_bytes, disk_free_bytes, loop_lag_seconds, slowest_loop, wakes
FROM samples WHERE resolution = $1 AND at >= $2 AND at < $3 ORDER BY at DESC LIMIT $4;

-- name: prune
DELETE FROM samples WHERE resolution = $1 AND at < $2;
