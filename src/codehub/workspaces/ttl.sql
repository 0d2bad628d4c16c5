-- name: note_activity
-- Never backwards, whatever comes in whatever order. Not `updated_at`: nothing was decided.
UPDATE workspaces w
SET last_access_at = a.at
FROM unnest($1::text[], $2::timestamptz[]) AS a (id, at)
WHERE w.id = a.id AND w.last_access_at < a.at;

-- name: awake_templates
-- The distinct ones, by as many steps in the index as there are.
WITH RECURSIVE t (template) AS (
    (SELECT template FROM workspaces
     WHERE phase = 'RUNNING' AND desired_state = 'RUNNING' AND operation = 'NONE' AND deleted_at IS NULL
       AND standby_ttl_seconds IS NULL
     ORDER BY template LIMIT 1)
    UNION ALL
    SELECT (SELECT w.template FROM workspaces w
            WHERE w.phase = 'RUNNING' AND w.desired_state = 'RUNNING' AND w.operation = 'NONE' AND w.deleted_at IS NULL
              AND w.standby_ttl_seconds IS NULL AND w.template > t.template
            ORDER BY w.template LIMIT 1)
    FROM t WHERE t.template IS NOT NULL
)
SELECT template FROM t WHERE template IS NOT NULL;

-- name: asleep_templates
WITH RECURSIVE t (template) AS (
    (SELECT template FROM workspaces
     WHERE phase = 'STANDBY' AND desired_state = 'STANDBY' AND operation = 'NONE' AND deleted_at IS NULL
       AND archive_ttl_seconds IS NULL
     ORDER BY template LIMIT 1)
    UNION ALL
    SELECT (SELECT w.template FROM workspaces w
            WHERE w.phase = 'STANDBY' AND w.desired_state = 'STANDBY' AND w.operation = 'NONE' AND w.deleted_at IS NULL
              AND w.archive_ttl_seconds IS NULL AND w.template > t.template
            ORDER BY w.template LIMIT 1)
    FROM t WHERE t.template IS NOT NULL
)
SELECT template FROM t WHERE template IS NOT NULL;

-- name: idle
-- Whose time is up as of $3: by their template's time ($1, $2), or by their own if that began no earlier than $4 says.
SELECT w.id, w.template, w.address, w.idle_since, t.seconds
FROM unnest($1::text[], $2::int[]) AS t (template, seconds)
CROSS JOIN LATERAL (
    SELECT id, template, address, idle_since FROM workspaces
    WHERE phase = 'RUNNING' AND desired_state = 'RUNNING' AND operation = 'NONE' AND deleted_at IS NULL
      AND standby_ttl_seconds IS NULL
      AND template = t.template AND idle_since < $3::timestamptz - make_interval(secs => t.seconds)
      AND (keep_awake_until IS NULL OR keep_awake_until <= $3::timestamptz)
    ORDER BY idle_since LIMIT $5
) w
UNION ALL
(SELECT id, template, address, idle_since, standby_ttl_seconds FROM workspaces
 WHERE phase = 'RUNNING' AND desired_state = 'RUNNING' AND operation = 'NONE' AND deleted_at IS NULL
   AND standby_ttl_seconds > 0
   AND codehub_after(idle_since, standby_ttl_seconds) < $3::timestamptz
   AND (keep_awake_until IS NULL OR keep_awake_until <= $3::timestamptz)
   AND $4::timestamptz + make_interval(secs => standby_ttl_seconds) < $3::timestamptz
 ORDER BY codehub_after(idle_since, standby_ttl_seconds) LIMIT $5);

-- name: put_to_sleep
-- Conditional on everything the decision was made from: a workspace in which anything was done since is left alone.
WITH slept AS (
    UPDATE workspaces w
    SET desired_state = 'STANDBY', desired_by = 'ttl', desired_at = $4::timestamptz, updated_at = $4, attention_at = $4
    FROM unnest($1::text[], $2::timestamptz[], $3::int[]) AS d (id, idle_since, seconds)
    WHERE w.id = d.id AND w.phase = 'RUNNING' AND w.desired_state = 'RUNNING' AND w.operation = 'NONE'
      AND w.deleted_at IS NULL AND w.idle_since = d.idle_since
      AND (w.keep_awake_until IS NULL OR w.keep_awake_until <= $4)
    RETURNING w.id, d.idle_since, d.seconds
)
INSERT INTO workspace_history (workspace_id, at, actor, code, data, from_state, to_state)
SELECT id, $4, 'ttl', 'idle_sleep', jsonb_build_object('idle_since', idle_since, 'seconds', seconds), 'RUNNING', 'STANDBY'
FROM slept
RETURNING workspace_id;

-- name: keep_busy
-- The time that was up began when it was last found busy: the same stretch, whose line goes on. Else it is a new one.
WITH busy AS (
    SELECT b.*, (SELECT max(h.id) FROM workspace_history h WHERE h.workspace_id = b.id AND h.code = 'kept_awake') AS line
    FROM unnest($1::text[], $2::timestamptz[], $3::text[]) AS b (id, idle_since, work)
), gone_on AS (
    UPDATE workspace_history h
    SET data = h.data || jsonb_build_object(
        'until', $4::timestamptz, 'seconds', extract(epoch FROM $4 - (h.data ->> 'idle_since')::timestamptz)::int)
    FROM busy WHERE h.id = busy.line AND (h.data ->> 'until')::timestamptz = busy.idle_since
    RETURNING h.workspace_id
)
INSERT INTO workspace_history (workspace_id, at, actor, code, data)
SELECT id, $4, 'ttl', 'kept_awake', jsonb_build_object(
    'work', work, 'idle_since', idle_since, 'until', $4, 'seconds', extract(epoch FROM $4 - idle_since)::int)
FROM busy WHERE id NOT IN (SELECT workspace_id FROM gone_on);

-- name: store_away
-- Asleep for longer than the template's time ($1, $2), or than their own.
WITH old AS (
    SELECT w.id, w.phase_changed_at, t.seconds
    FROM unnest($1::text[], $2::int[]) AS t (template, seconds)
    CROSS JOIN LATERAL (
        SELECT id, phase_changed_at FROM workspaces
        WHERE phase = 'STANDBY' AND desired_state = 'STANDBY' AND operation = 'NONE' AND deleted_at IS NULL
          AND archive_ttl_seconds IS NULL
          AND template = t.template AND phase_changed_at < $3::timestamptz - make_interval(secs => t.seconds)
        ORDER BY phase_changed_at LIMIT $5
    ) w
    UNION ALL
    (SELECT id, phase_changed_at, archive_ttl_seconds FROM workspaces
     WHERE phase = 'STANDBY' AND desired_state = 'STANDBY' AND operation = 'NONE' AND deleted_at IS NULL
       AND archive_ttl_seconds > 0 AND codehub_after(phase_changed_at, archive_ttl_seconds) < $3::timestamptz
       AND $4::timestamptz + make_interval(secs => archive_ttl_seconds) < $3::timestamptz
     ORDER BY codehub_after(phase_changed_at, archive_ttl_seconds) LIMIT $5)
), stored AS (
    UPDATE workspaces w
    SET desired_state = 'ARCHIVED', desired_by = 'ttl', desired_at = $6::timestamptz, updated_at = $6, attention_at = $6
    FROM old
    WHERE w.id = old.id AND w.phase = 'STANDBY' AND w.desired_state = 'STANDBY' AND w.operation = 'NONE'
      AND w.deleted_at IS NULL AND w.phase_changed_at = old.phase_changed_at
    RETURNING w.id, old.phase_changed_at, old.seconds
)
INSERT INTO workspace_history (workspace_id, at, actor, code, data, from_state, to_state)
SELECT id, $6, 'ttl', 'idle_archive', jsonb_build_object('asleep_since', phase_changed_at, 'seconds', seconds),
       'STANDBY', 'ARCHIVED'
FROM stored
RETURNING workspace_id;

-- name: withdraw_sleep
-- A person came back before it began. Only a timer's request is withdrawn.
UPDATE workspaces
SET desired_state = 'RUNNING', desired_by = 'wake', desired_at = least($2::timestamptz, $3::timestamptz),
    updated_at = $3, attention_at = $3, last_access_at = greatest(last_access_at, $2)
WHERE id = $1 AND desired_by = 'ttl' AND desired_state = 'STANDBY' AND operation = 'NONE' AND observed_status = 'RUNNING'
  AND health_status = 'OK' AND deleted_at IS NULL
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: last_sleep
-- The newest line of history in which a user, or a timer, asked it to sleep.
SELECT id, workspace_id, at, codehub_actor_name(actor) AS actor, code, codehub_data_with_names(data) AS data,
       from_state, to_state, took_seconds
FROM workspace_history WHERE workspace_id = $1
  AND code IN ('sleep_requested', 'archive_requested', 'idle_sleep', 'idle_archive', 'owner_deactivated')
ORDER BY id DESC LIMIT 1;

-- name: keep_awake
-- Only ever later: two holds at a time do not shorten each other.
UPDATE workspaces
SET keep_awake_until = greatest(keep_awake_until, $2::timestamptz),
    keep_awake_reason = CASE WHEN $2 > coalesce(keep_awake_until, '-infinity') THEN $3 ELSE keep_awake_reason END,
    updated_at = $4
WHERE id = $1 AND phase = 'RUNNING' AND op_id = $5 AND deleted_at IS NULL
  AND EXISTS (SELECT FROM users u WHERE u.id = owner_id AND u.deactivated_at IS NULL)
RETURNING *, codehub_user_name(owner_id) AS owner;
