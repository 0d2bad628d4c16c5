-- name: add
-- Nothing, when one is open already.
INSERT INTO backups (id, state, asked_by, asked_at) VALUES ($1, 'asked', codehub_actor_id($2), $3)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: found
-- A file without a row: what this database knew of it is gone, as after a restore.
INSERT INTO backups (id, state, asked_by, asked_at, ended_at, file_bytes) VALUES ($1, 'done', 'codehub', $2, $2, $3)
ON CONFLICT DO NOTHING;

-- name: all
SELECT id, state, codehub_actor_name(asked_by) AS asked_by, asked_at, begun_at, ended_at, epoch, things_done, things,
       bytes_done, bytes, file_bytes, contents, failure, detail
FROM backups ORDER BY asked_at DESC, id LIMIT 1000;

-- name: lock
SELECT state FROM backups WHERE id = $1 FOR UPDATE;

-- name: move
UPDATE backups SET state = $2, ended_at = coalesce($3, ended_at) WHERE id = $1;

-- name: begin
UPDATE backups SET state = 'running', begun_at = $2, epoch = $3 WHERE id = $1 AND state = 'asked' RETURNING id;

-- name: progress
UPDATE backups SET things_done = $2, things = $3, bytes_done = $4, bytes = $5 WHERE id = $1;

-- name: finish
UPDATE backups
SET state = $2, ended_at = $3, file_bytes = $4, contents = $5, failure = $6, detail = $7
WHERE id = $1 AND state IN ('running', 'cancelling');

-- name: remove
DELETE FROM backups WHERE id = ANY ($1::text[]);

-- name: forget_failed
-- Those that came to nothing: the newest say enough.
DELETE FROM backups WHERE id IN (
    SELECT id FROM backups WHERE state IN ('failed', 'cancelled') ORDER BY asked_at DESC, id OFFSET $1
);

-- name: wake_coordinator
SELECT pg_notify('codehub_requests', '');

-- name: sizes
-- Of what a backup would hold, in bytes on disk: as `archives` and `homes` of `queries.sql` choose it.
WITH things AS (
    SELECT p.size FROM restore_points p JOIN workspaces w ON w.id = p.workspace_id WHERE NOT w.purge
    UNION ALL
    SELECT coalesce(disk_bytes, 0) FROM workspaces
    WHERE volume_generation IS NOT NULL AND NOT purge AND emptied_at IS NULL
      AND (observed_status IN ('STANDBY', 'RUNNING') OR volume_parked)
)
SELECT coalesce(sum(size), 0)::bigint AS files, coalesce(max(size), 0)::bigint AS largest,
       pg_database_size(current_database()) AS database
FROM things;
