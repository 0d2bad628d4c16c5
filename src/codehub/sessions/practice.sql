-- name: lock_owner
-- Tasks of one person are added one after the other, so that they can be counted.
SELECT u.id FROM workspaces w JOIN users u ON u.id = w.owner_id WHERE w.id = $1 FOR NO KEY UPDATE OF u;

-- name: supersede
-- What the same run asked for before it was taken over, or at an earlier step, and has not begun.
UPDATE practice_tasks SET status = 'DONE', result = $5, ended_at = $6, request = '{}'
WHERE id IN (
    SELECT id FROM practice_tasks
    WHERE run_id = $1 AND kind = $2 AND status = 'WAITING' AND (fence, step_index) < ($3, $4)
    FOR UPDATE SKIP LOCKED  -- being claimed this moment
)
RETURNING id;

-- name: waiting_of
SELECT count(*) FROM practice_tasks WHERE owner_id = $1 AND status = 'WAITING';

-- name: add_task
-- Nothing is returned when the same is under way.
INSERT INTO practice_tasks (id, kind, run_id, workspace_id, owner_id, step_index, fence, request, created_at)
SELECT $1, $2, $3, w.id, w.owner_id, $5, $6, $7, $8 FROM workspaces w WHERE w.id = $4
ON CONFLICT (run_id, kind, step_index, fence) WHERE status <> 'DONE' DO NOTHING
RETURNING id;

-- name: under_way
SELECT id FROM practice_tasks WHERE run_id = $1 AND kind = $2 AND step_index = $3 AND fence = $4 AND status <> 'DONE';

-- name: not_taken
-- Its request was told to ask again before it ended; this is that request, asked again.
SELECT id FROM practice_tasks
WHERE run_id = $1 AND kind = $2 AND step_index = $3 AND fence = $4 AND status = 'DONE' AND taken_at IS NULL
  AND ended_at > $5
ORDER BY ended_at DESC LIMIT 1;

-- name: take
UPDATE practice_tasks SET taken_at = $2 WHERE id = $1;

-- name: wake_coordinator
SELECT pg_notify('codehub_practice', '');

-- name: results
SELECT id, result FROM practice_tasks WHERE id = ANY ($1::text[]) AND status = 'DONE';

-- name: put_back
-- What an earlier leader left, and what we could not end: to be run again.
UPDATE practice_tasks SET status = 'WAITING', epoch = NULL
WHERE status = 'RUNNING' AND (epoch <> $1 OR NOT (id = ANY ($2::text[])))
RETURNING id;

-- name: give_up
-- What ended those who ran it, again and again, is not run once more.
UPDATE practice_tasks SET status = 'DONE', result = $3, ended_at = $2, request = '{}'
WHERE status = 'WAITING' AND attempts >= $1
RETURNING kind;

-- name: drop_outdated
-- What nobody waits for any more: its run has ended, or was taken over.
UPDATE practice_tasks t SET status = 'DONE', result = $2, ended_at = $1, request = '{}'
FROM session_runs r
WHERE r.id = t.run_id AND t.status = 'WAITING' AND (r.status <> 'RUNNING' OR r.fence <> t.fence)
RETURNING t.kind;

-- name: claim
-- In turns: first the person whose last turn is longest ago; of what they asked for, the oldest. Of each person one of a
-- kind at a time, and in each workspace one. How many in all, the caller knows. Only where we can see its files.
WITH turns AS (
    SELECT owner_id, max(started_at) AS last FROM practice_tasks WHERE kind = $1 GROUP BY owner_id
), next AS (
    SELECT t.id, w.template FROM practice_tasks t
        JOIN workspaces w ON w.id = t.workspace_id JOIN turns ON turns.owner_id = t.owner_id
    WHERE t.status = 'WAITING' AND t.kind = $1 AND coalesce(w.node, $3) = $3
      AND NOT EXISTS (
          SELECT FROM practice_tasks o
          WHERE o.owner_id = t.owner_id AND (o.kind = t.kind OR o.workspace_id = t.workspace_id) AND o.id <> t.id
            AND (o.status = 'RUNNING' OR (o.status = 'WAITING' AND (o.created_at, o.id) < (t.created_at, t.id)))
      )
    ORDER BY turns.last NULLS FIRST, t.created_at, t.id LIMIT $2
)
UPDATE practice_tasks t SET status = 'RUNNING', epoch = $4, attempts = attempts + 1, started_at = $5
FROM next WHERE t.id = next.id AND t.status = 'WAITING'  -- still: it may have been superseded meanwhile
RETURNING t.id, t.kind, t.workspace_id, next.template, t.request, t.created_at;

-- name: waiting
SELECT count(*) FROM practice_tasks WHERE status = 'WAITING';

-- name: finish
UPDATE practice_tasks SET status = 'DONE', result = $3, ended_at = $4, request = '{}'
WHERE id = $1 AND status = 'RUNNING' AND epoch = $2
RETURNING workspace_id;

-- name: say_done
SELECT pg_notify('codehub_practice_done', '');

-- name: delivered
SELECT path, digest FROM delivered_files WHERE workspace_id = $1 AND path = ANY ($2::text[]);

-- name: note_delivered
INSERT INTO delivered_files (workspace_id, path, digest, at)
SELECT $1, path, digest, $4 FROM unnest($2::text[], $3::text[]) AS d (path, digest)
ON CONFLICT DO NOTHING;

-- name: prune
DELETE FROM practice_tasks
WHERE id IN (SELECT id FROM practice_tasks WHERE status = 'DONE' AND ended_at < $1 ORDER BY ended_at LIMIT $2);

-- name: lock_plan
-- Opens of one plan go one after the other: it has one workspace for each template.
SELECT title, codehub_user_name(owner_id) AS owner FROM plans WHERE id = $1 FOR UPDATE;

-- name: plan_workspace
SELECT workspace_id FROM plan_workspaces WHERE plan_id = $1 AND template = $2;

-- name: other_templates
SELECT EXISTS (SELECT FROM plan_workspaces WHERE plan_id = $1 AND template <> $2);

-- name: keep_plan_workspace
INSERT INTO plan_workspaces (plan_id, template, workspace_id) VALUES ($1, $2, $3)
ON CONFLICT (plan_id, template) DO UPDATE SET workspace_id = excluded.workspace_id;

-- name: set_workspace
-- A run that gets another one is told of; with the step it is at by now.
WITH held AS MATERIALIZED (
    SELECT id, step_index, workspace_id FROM session_runs WHERE id = $1 AND fence = $2 AND status = 'RUNNING' FOR UPDATE
), changed AS (
    UPDATE session_runs r SET workspace_id = $3 FROM held WHERE r.id = held.id AND held.workspace_id IS DISTINCT FROM $3
    RETURNING r.step_index
), told AS (
    INSERT INTO deferred_events (at, audience, kind, subject, data)
    SELECT $4, $5, $6, $1, $7::jsonb || jsonb_build_object('step_index', step_index) FROM changed
)
SELECT id FROM held;
