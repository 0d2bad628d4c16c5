-- name: lines
-- What can change whether a workspace runs, and who asked for it: the newest first.
SELECT workspace_id, at, code, data, from_state, to_state FROM workspace_history
WHERE at >= $1 AND (
    code IN ('idle_sleep', 'idle_archive', 'work_resumed', 'kept_awake', 'woken', 'start_requested', 'sleep_requested',
             'archive_requested', 'owner_deactivated', 'delete_requested', 'purge_requested')
    OR (from_state IS DISTINCT FROM to_state AND 'RUNNING' IN (from_state, to_state)
        AND code IN ('started', 'stopped', 'ide_ended', 'ide_gone', 'problem_found', 'observed', 'operation_given_up',
                     'readable_again', 'recover_requested', 'deleted')))
ORDER BY at DESC, id DESC LIMIT $2;

-- name: periods
SELECT workspace_id, began_at, ended_at, kept_awake_until FROM idle_periods
WHERE ended_at >= $1 ORDER BY ended_at DESC, id DESC LIMIT $2;

-- name: facts
-- Of these, and of all that run.
SELECT id, template, standby_ttl_seconds, archive_ttl_seconds, phase, phase_changed_at, idle_since, keep_awake_until
FROM workspaces WHERE id = ANY ($1::text[])
UNION
SELECT id, template, standby_ttl_seconds, archive_ttl_seconds, phase, phase_changed_at, idle_since, keep_awake_until
FROM workspaces WHERE observed_status = 'RUNNING';

-- name: known_since
SELECT idle_periods_since FROM platform;

-- name: prune
-- The oldest, and what is more than may be kept; from when on none is missing is moved along.
WITH gone AS (
    DELETE FROM idle_periods WHERE id IN (
        (SELECT id FROM idle_periods WHERE ended_at < $1 ORDER BY ended_at LIMIT $3)
        UNION
        (SELECT id FROM idle_periods WHERE id <= (SELECT max(id) FROM idle_periods) - $2 ORDER BY id LIMIT $3))
    RETURNING ended_at
), moved AS (
    UPDATE platform SET idle_periods_since = greatest(idle_periods_since, (SELECT max(ended_at) FROM gone))
    WHERE EXISTS (SELECT FROM gone)
)
SELECT count(*) FROM gone;
