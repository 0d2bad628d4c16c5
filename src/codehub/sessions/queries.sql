-- A run is written by one statement each, which does everything or nothing: it finds the row as it was read (status, fence,
-- step) or changes nothing. Whatever locks several rows does so in this order: the key, the session, the run.

-- name: forget_answers
DELETE FROM idempotency_keys WHERE principal = $1;

-- name: add_blueprint
INSERT INTO blueprints (hash, body, view_hash, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING;

-- name: blueprint
SELECT body, view_hash FROM blueprints WHERE hash = $1;

-- name: active_user
SELECT id FROM users WHERE name = $1 AND deactivated_at IS NULL;

-- name: one_plan_at_a_time
SELECT pg_advisory_xact_lock(hashtextextended('plans:' || codehub_actor_id($1), 0));

-- name: count_plans
-- Without those that a class was given: a teacher with many learners makes as many.
SELECT count(*) FROM plans WHERE created_by = codehub_actor_id($1) AND NOT is_assigned;

-- name: add_plan
INSERT INTO plans (id, owner_id, title, created_by, created_at, course_id, course_version, starts_on)
VALUES ($1, $2, $3, codehub_actor_id($4), $5, $6, $7, $8);

-- name: add_sessions
INSERT INTO sessions (id, plan_id, position, key, title, scheduled_for_date, blueprint_hash, changed_at)
SELECT id, $1, position, key, title, scheduled_for_date, blueprint_hash, $2
FROM unnest($3::text[], $4::int[], $5::text[], $6::text[], $7::date[], $8::text[])
    AS s (id, position, key, title, scheduled_for_date, blueprint_hash);

-- name: plan
SELECT p.id, u.name AS owner, p.owner_id, p.title, codehub_actor_name(p.created_by) AS created_by, p.created_at,
       p.course_id, p.course_version, p.starts_on
FROM plans p JOIN users u ON u.id = p.owner_id
WHERE p.id = $1;

-- name: page_plans
SELECT p.id, u.name AS owner, p.owner_id, p.title, codehub_actor_name(p.created_by) AS created_by, p.created_at,
       p.course_id, p.course_version, p.starts_on
FROM plans p JOIN users u ON u.id = p.owner_id
WHERE ($1::text IS NULL OR u.name = $1) AND (p.created_at, p.id) > ($2, $3)
ORDER BY p.created_at, p.id
LIMIT $4;

-- name: progress
SELECT plan_id, status, count(*) AS sessions FROM sessions WHERE plan_id = ANY ($1::text[]) GROUP BY plan_id, status;

-- name: sessions_of
SELECT s.id, s.plan_id, s.position, s.key, s.title, s.scheduled_for_date, s.blueprint_hash, s.status, s.changed_at,
       r.id AS run_id, b.view_hash
FROM sessions s
JOIN blueprints b ON b.hash = s.blueprint_hash
LEFT JOIN session_runs r ON r.session_id = s.id AND r.status = 'RUNNING'
WHERE s.plan_id = $1
ORDER BY s.position;

-- name: session
SELECT s.id, s.plan_id, s.position, s.key, s.title, s.scheduled_for_date, s.blueprint_hash, s.status, s.changed_at,
       r.id AS run_id, b.view_hash, u.name AS owner, p.owner_id
FROM sessions s
JOIN blueprints b ON b.hash = s.blueprint_hash
JOIN plans p ON p.id = s.plan_id
JOIN users u ON u.id = p.owner_id
LEFT JOIN session_runs r ON r.session_id = s.id AND r.status = 'RUNNING'
WHERE s.id = $1;

-- name: running
SELECT id FROM session_runs WHERE id = ANY ($1::text[]) AND status = 'RUNNING';

-- name: at_work
SELECT DISTINCT ON (p.owner_id) p.owner_id, s.id AS session_id, s.title, r.step_index + 1 AS step,
       json_array_length(b.body::json -> 'steps') AS steps, r.last_activity_at
FROM session_runs r
JOIN sessions s ON s.id = r.session_id
JOIN plans p ON p.id = s.plan_id
JOIN blueprints b ON b.hash = r.blueprint_hash
WHERE r.status = 'RUNNING' AND p.owner_id = ANY ($1::text[])
ORDER BY p.owner_id, r.last_activity_at DESC, r.number DESC;

-- name: lock_session
SELECT id FROM sessions WHERE id = $1 FOR UPDATE;

-- name: close_session
-- On the locked row: its running run ends with it.
WITH moved AS (
    UPDATE sessions SET status = $2, changed_at = $3 WHERE id = $1
), ended AS (
    UPDATE session_runs SET status = 'ABANDONED', ended_at = $3, end_reason = $4 WHERE session_id = $1 AND status = 'RUNNING'
)
INSERT INTO deferred_events (at, audience, kind, subject, data)
SELECT $3, e.audience, e.kind, e.subject, e.data
FROM jsonb_to_recordset($5) AS e (audience text, kind text, subject text, data jsonb);

-- name: start_view
-- What a start is decided from, in one snapshot. One row, whatever exists of it. Live keys are counted where one would
-- be added, and no further than to their bound ($5).
SELECT i.fingerprint, i.status AS answer_status, i.body, i.created_at AS answered_at,
       s.id, s.plan_id, s.position, s.key, s.title, s.scheduled_for_date, s.blueprint_hash, s.status, s.changed_at,
       b.view_hash, u.name AS owner, p.owner_id,
       r.id AS run_id, r.step_index AS run_step_index, r.fence AS run_fence,
       r.blueprint_hash AS run_blueprint_hash, r.predecessor_id AS run_predecessor_id, r.workspace_id AS run_workspace_id,
       r.started_at AS run_started_at, r.last_activity_at AS run_last_activity_at, rk.state AS run_snapshot,
       r.inherits_from AS run_inherits_from, r.first_step AS run_first_step, r.snapshot_bytes AS run_snapshot_bytes,
       CASE WHEN i.created_at >= $4 THEN 0 ELSE (
           SELECT count(*) FROM (SELECT FROM idempotency_keys WHERE principal = $2 AND created_at >= $4 LIMIT $5) AS live
       ) END AS live_keys,
       (SELECT id FROM session_runs WHERE session_id = $1 ORDER BY number DESC LIMIT 1) AS latest_id
FROM (VALUES (1)) AS always
LEFT JOIN idempotency_keys i ON i.principal = $2 AND i.key = $3
LEFT JOIN sessions s ON s.id = $1
LEFT JOIN blueprints b ON b.hash = s.blueprint_hash
LEFT JOIN plans p ON p.id = s.plan_id
LEFT JOIN users u ON u.id = p.owner_id
LEFT JOIN session_runs r ON r.session_id = $1 AND r.status = 'RUNNING'
LEFT JOIN run_snapshots rk
    ON rk.run_id = CASE WHEN r.step_index > r.first_step THEN r.id ELSE r.inherits_from END AND rk.step_index = r.step_index - 1;

-- name: wait_for_key
-- Where one start of many on the same session, or with the same key, has to wait for its turn: bounded.
SELECT set_config('lock_timeout', $1, true), CASE WHEN $2::bigint IS NOT NULL THEN pg_advisory_xact_lock($2)::text END;

-- name: lock_running
SELECT id FROM session_runs WHERE session_id = $1 AND status = 'RUNNING' FOR UPDATE;

-- name: key_is_free
SELECT pg_try_advisory_xact_lock($1);

-- name: create_run
-- A second request with the same key waits here for the first; then the session is not as it was read.
WITH waited AS MATERIALIZED (
    SELECT set_config('lock_timeout', $1, true), CASE WHEN $2::bigint IS NOT NULL THEN pg_advisory_xact_lock($2)::text END
), moved AS (
    UPDATE sessions s SET status = 'IN_PROGRESS', changed_at = $3
    FROM waited
    WHERE s.id = $4 AND s.status = 'SCHEDULED' AND s.blueprint_hash = $5
    RETURNING s.id
), made AS (
    INSERT INTO session_runs (id, session_id, step_index, blueprint_hash, predecessor_id, workspace_id, started_at,
                              last_activity_at, inherits_from, first_step, snapshot_bytes)
    SELECT $6, id, $7, $5, $8, $9, $3, $3, $10, $7, $16 FROM moved
    RETURNING id
), kept AS (
    INSERT INTO idempotency_keys (principal, key, fingerprint, status, body, created_at)
    SELECT $11, $12, $13, 201, $14, $3 FROM made WHERE $12 <> ''
), told AS (
    INSERT INTO deferred_events (at, audience, kind, subject, data)
    SELECT $3, e.audience, e.kind, e.subject, e.data
    FROM made, jsonb_to_recordset($15) AS e (audience text, kind text, subject text, data jsonb)
)
SELECT count(*) FROM made;

-- name: recover_run
WITH waited AS MATERIALIZED (
    SELECT set_config('lock_timeout', $1, true), CASE WHEN $2::bigint IS NOT NULL THEN pg_advisory_xact_lock($2)::text END
), taken AS (
    UPDATE session_runs r SET fence = r.fence + 1, last_activity_at = $3
    FROM waited
    WHERE r.id = $4 AND r.status = 'RUNNING' AND r.fence = $5 AND r.step_index = $6
      AND r.workspace_id IS NOT DISTINCT FROM $7
    RETURNING r.id
), kept AS (
    INSERT INTO idempotency_keys (principal, key, fingerprint, status, body, created_at)
    SELECT $8, $9, $10, 200, $11, $3 FROM taken WHERE $9 <> ''
), told AS (
    INSERT INTO deferred_events (at, audience, kind, subject, data)
    SELECT $3, e.audience, e.kind, e.subject, e.data
    FROM taken, jsonb_to_recordset($12) AS e (audience text, kind text, subject text, data jsonb)
)
SELECT count(*) FROM taken;

-- name: drop_expired_key
DELETE FROM idempotency_keys WHERE principal = $1 AND key = $2 AND created_at < $3;

-- name: prune_keys
DELETE FROM idempotency_keys
WHERE (principal, key) IN (SELECT principal, key FROM idempotency_keys WHERE created_at < $1 ORDER BY created_at LIMIT $2);

-- name: run
-- With the digest of what was saved for one step ($2): the same again is a replay.
SELECT r.id, r.session_id, s.plan_id, u.name AS owner, p.owner_id, r.status, r.step_index, r.fence, r.blueprint_hash,
       r.predecessor_id, r.workspace_id, r.started_at, r.last_activity_at, r.ended_at, r.end_reason, r.end_note,
       r.inherits_from, r.first_step, r.snapshot_bytes,
       k.state AS snapshot, d.digest AS saved
FROM session_runs r
JOIN sessions s ON s.id = r.session_id
JOIN plans p ON p.id = s.plan_id
JOIN users u ON u.id = p.owner_id
LEFT JOIN run_snapshots k
    ON k.run_id = CASE WHEN r.step_index > r.first_step THEN r.id ELSE r.inherits_from END AND k.step_index = r.step_index - 1
LEFT JOIN run_snapshots d ON d.run_id = r.id AND d.step_index = $2
WHERE r.id = $1;

-- name: page_runs
-- In the order in which they began; $2: after this one, of the same session.
SELECT r.id, r.session_id, s.plan_id, u.name AS owner, p.owner_id, r.status, r.step_index, r.fence, r.blueprint_hash,
       r.predecessor_id, r.workspace_id, r.started_at, r.last_activity_at, r.ended_at, r.end_reason, r.end_note,
       r.inherits_from, r.first_step, r.snapshot_bytes
FROM session_runs r
JOIN sessions s ON s.id = r.session_id
JOIN plans p ON p.id = s.plan_id
JOIN users u ON u.id = p.owner_id
WHERE r.session_id = $1
  AND r.number > coalesce((SELECT number FROM session_runs WHERE session_id = $1 AND id = $2), 0)
ORDER BY r.number
LIMIT $3;

-- name: last_runs
-- The newest first.
SELECT r.id, r.session_id, s.plan_id, u.name AS owner, p.owner_id, r.status, r.step_index, r.fence, r.blueprint_hash,
       r.predecessor_id, r.workspace_id, r.started_at, r.last_activity_at, r.ended_at, r.end_reason, r.end_note,
       r.inherits_from, r.first_step, r.snapshot_bytes
FROM session_runs r
JOIN sessions s ON s.id = r.session_id
JOIN plans p ON p.id = s.plan_id
JOIN users u ON u.id = p.owner_id
WHERE r.session_id = $1
ORDER BY r.number DESC
LIMIT $2;

-- name: snapshots
-- As many as have $4 bytes together, and one more. Each run of the chain has the steps from its `first_step` to where the next
-- one begins, at least one: the chain is no longer than the steps.
WITH RECURSIVE chain AS (
    SELECT id, inherits_from, first_step, step_index AS until FROM session_runs WHERE id = $1
    UNION ALL
    SELECT r.id, r.inherits_from, r.first_step, c.first_step
    FROM chain c JOIN session_runs r ON r.id = c.inherits_from
    WHERE c.first_step > $2 + 1
)
SELECT step_index, state, at, until <= $4 AS fits
FROM (
    SELECT step_index, state, at, bytes, sum(bytes) OVER (ORDER BY step_index) AS until
    FROM (
        SELECT k.step_index, k.state, k.at, octet_length(k.state::text) AS bytes
        FROM chain c JOIN run_snapshots k ON k.run_id = c.id AND k.step_index >= c.first_step AND k.step_index < c.until
        WHERE k.step_index > $2
        ORDER BY k.step_index LIMIT $3
    ) AS page
) AS measured
WHERE until - bytes <= $4
ORDER BY step_index;

-- name: inherited_digest
-- Of a step that was saved in one of the runs that this one goes on from.
WITH RECURSIVE chain AS (
    SELECT id, inherits_from, first_step FROM session_runs WHERE id = $1
    UNION ALL
    SELECT r.id, r.inherits_from, r.first_step
    FROM chain c JOIN session_runs r ON r.id = c.inherits_from
    WHERE c.first_step > $2
)
SELECT k.digest FROM chain c JOIN run_snapshots k ON k.run_id = c.id AND k.step_index = $2 WHERE c.first_step <= $2;

-- name: save_step
WITH advanced AS (
    UPDATE session_runs SET step_index = step_index + 1, last_activity_at = $4, snapshot_bytes = $8
    WHERE id = $1 AND status = 'RUNNING' AND fence = $2 AND step_index = $3
    RETURNING id
), saved AS (
    INSERT INTO run_snapshots (run_id, step_index, state, digest, at) SELECT id, $3, $5::text::json, $6, $4 FROM advanced
), told AS (
    INSERT INTO deferred_events (at, audience, kind, subject, data)
    SELECT $4, e.audience, e.kind, e.subject, e.data
    FROM advanced, jsonb_to_recordset($7) AS e (audience text, kind text, subject text, data jsonb)
)
SELECT count(*) FROM advanced;

-- name: save_last_step
-- The session is locked before the run, as everywhere.
WITH held AS MATERIALIZED (
    SELECT id FROM sessions WHERE id = $9 AND status = 'IN_PROGRESS' FOR UPDATE
), advanced AS (
    UPDATE session_runs r
    SET step_index = r.step_index + 1, last_activity_at = $4, snapshot_bytes = $8, status = 'COMPLETED', ended_at = $4,
        end_reason = 'completed'
    FROM held
    WHERE r.id = $1 AND r.status = 'RUNNING' AND r.fence = $2 AND r.step_index = $3
    RETURNING r.id
), saved AS (
    INSERT INTO run_snapshots (run_id, step_index, state, digest, at) SELECT id, $3, $5::text::json, $6, $4 FROM advanced
), completed AS (
    UPDATE sessions s SET status = 'COMPLETED', changed_at = $4 FROM advanced WHERE s.id = $9
), told AS (
    INSERT INTO deferred_events (at, audience, kind, subject, data)
    SELECT $4, e.audience, e.kind, e.subject, e.data
    FROM advanced, jsonb_to_recordset($7) AS e (audience text, kind text, subject text, data jsonb)
)
SELECT count(*) FROM advanced;

-- name: note_try
WITH touched AS (
    UPDATE session_runs SET last_activity_at = $4
    WHERE id = $1 AND status = 'RUNNING' AND fence = $2 AND step_index = $3
    RETURNING id
), tried AS (
    INSERT INTO run_tries AS t (run_id, step_index, tries, last_at, last_result) SELECT id, $3, 1, $4, $5 FROM touched
    ON CONFLICT (run_id, step_index)
    DO UPDATE SET tries = t.tries + 1, last_at = excluded.last_at, last_result = excluded.last_result
), told AS (
    INSERT INTO deferred_events (at, audience, kind, subject, data)
    SELECT $4, e.audience, e.kind, e.subject, e.data
    FROM touched, jsonb_to_recordset($6) AS e (audience text, kind text, subject text, data jsonb)
)
SELECT count(*) FROM touched;

-- name: note_activity
UPDATE session_runs SET last_activity_at = greatest(last_activity_at, $3)
WHERE id = $1 AND status = 'RUNNING' AND fence = $2 AND step_index = $4
RETURNING last_activity_at;

-- name: abandon_run
-- The session goes back to where it can be started again.
WITH held AS MATERIALIZED (
    SELECT id FROM sessions WHERE id = $1 AND status = 'IN_PROGRESS' FOR UPDATE
), ended AS (
    UPDATE session_runs r SET status = 'ABANDONED', ended_at = $3, end_reason = $4, end_note = $5
    FROM held
    WHERE r.id = $2 AND r.status = 'RUNNING' AND r.fence = $6 AND r.last_activity_at <= $7 AND r.step_index = $9
    RETURNING r.id
), moved AS (
    UPDATE sessions s SET status = 'SCHEDULED', changed_at = $3 FROM ended WHERE s.id = $1
), told AS (
    INSERT INTO deferred_events (at, audience, kind, subject, data)
    SELECT $3, e.audience, e.kind, e.subject, e.data
    FROM ended, jsonb_to_recordset($8) AS e (audience text, kind text, subject text, data jsonb)
)
SELECT count(*) FROM ended;

-- name: inactive
SELECT r.id, r.session_id, s.plan_id, u.name AS owner, p.owner_id, r.status, r.step_index, r.fence, r.blueprint_hash,
       r.predecessor_id, r.workspace_id, r.started_at, r.last_activity_at, r.ended_at, r.end_reason, r.end_note,
       r.inherits_from, r.first_step, r.snapshot_bytes
FROM session_runs r
JOIN sessions s ON s.id = r.session_id
JOIN plans p ON p.id = s.plan_id
JOIN users u ON u.id = p.owner_id
WHERE r.status = 'RUNNING' AND r.last_activity_at < $1
ORDER BY r.last_activity_at
LIMIT $2;

-- name: tries
SELECT step_index, tries, last_at, last_result FROM run_tries WHERE run_id = $1 ORDER BY step_index;
