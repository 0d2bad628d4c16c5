-- name: vacant
-- Whether no coordinator leads. Waits for no lock.
SELECT NOT EXISTS (SELECT FROM system_locks WHERE name = $1 AND expires_at >= clock_timestamp());

-- name: end_fenced
-- Ends the sessions that still hold a fence of a lease that has run out: their leader may be stopped in the middle of a
-- statement, and would keep the next one from leading until that process is continued. Fences alone lock rows there.
SELECT count(pg_terminate_backend(pid))
FROM pg_locks
WHERE locktype = 'relation'
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation = 'system_locks'::regclass
  AND mode = 'RowShareLock'
  AND granted
  AND EXISTS (SELECT FROM system_locks WHERE name = $1 AND expires_at < clock_timestamp());

-- name: acquire
-- Takes a lease that no coordinator holds, or that has run out. Changing `epoch` changes a key: this waits for every fenced
-- transaction of the last leader to end, and none can begin after it.
INSERT INTO system_locks (name, holder, epoch, expires_at, status)
VALUES ($1, $2, 1, clock_timestamp() + make_interval(secs => $3), $4)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder,
    epoch = system_locks.epoch + 1,
    expires_at = clock_timestamp() + make_interval(secs => $3),
    status = excluded.status
WHERE system_locks.expires_at < clock_timestamp()
RETURNING epoch;

-- name: renew
UPDATE system_locks
SET expires_at = clock_timestamp() + make_interval(secs => $4), status = $5
WHERE name = $1 AND holder = $2 AND epoch = $3
RETURNING true;

-- name: release
-- The epoch stays: the next leader gets a higher one.
UPDATE system_locks SET expires_at = '-infinity' WHERE name = $1 AND holder = $2 AND epoch = $3;

-- name: fence
-- By the holder, too: a standby that took over without the last election may give its epoch out once more.
SELECT 1 FROM system_locks WHERE name = $1 AND epoch = $2 AND holder = $3 FOR KEY SHARE;

-- name: status
SELECT holder, epoch, expires_at, expires_at > clock_timestamp() AS held, status FROM system_locks WHERE name = $1;

-- name: setbacks
SELECT name, failures, retry_at FROM setbacks WHERE kind = $1;

-- name: note_setback
INSERT INTO setbacks (kind, name, failures, error, since, retry_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (kind, name) DO UPDATE SET failures = excluded.failures, error = excluded.error, retry_at = excluded.retry_at;

-- name: clear_setback
DELETE FROM setbacks WHERE kind = $1 AND name = $2;

-- name: all_setbacks
SELECT kind, name, failures, error, since, retry_at FROM setbacks ORDER BY since, kind, name LIMIT $1;
