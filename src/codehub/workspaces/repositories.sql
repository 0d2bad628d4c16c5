-- name: add
INSERT INTO workspace_repositories (workspace_id, fetch_id, url, branch, folder, asked_at, again_at)
VALUES ($1, $2, $3, $4, $5, $6, $6);

-- name: of
SELECT workspace_id, fetch_id, url, branch, folder, status, attempts, cause, said, asked_at, started_at, ended_at
FROM workspace_repositories WHERE workspace_id = ANY ($1::text[]);

-- name: ask_again
-- What is under way goes on; what waits to be tried again is tried now.
UPDATE workspace_repositories
SET status = 'WAITING', fetch_id = $2, epoch = NULL, attempts = 0, cause = NULL, said = NULL,
    asked_at = $3, again_at = $3, started_at = NULL, ended_at = NULL
WHERE workspace_id = $1 AND status <> 'RUNNING'
RETURNING url, branch;

-- name: put_back
-- What an earlier leader left, and what we could not end.
UPDATE workspace_repositories SET status = 'WAITING', epoch = NULL, cause = $4, again_at = $3
WHERE status = 'RUNNING' AND (epoch <> $1 OR NOT (workspace_id = ANY ($2::text[])))
RETURNING workspace_id;

-- name: give_up
-- What was interrupted again and again.
UPDATE workspace_repositories SET status = 'FAILED', cause = coalesce(cause, $2), ended_at = $3
WHERE status = 'WAITING' AND attempts >= $1
RETURNING workspace_id, url, cause, said;

-- name: claim
-- Where it runs and nothing is done to it; of each person one at a time, the oldest.
WITH due AS (
    SELECT DISTINCT ON (w.owner_id) r.workspace_id, r.asked_at, w.template
    FROM workspace_repositories r JOIN workspaces w ON w.id = r.workspace_id
    WHERE r.status = 'WAITING' AND r.again_at <= $4 AND coalesce(w.node, $2) = $2
      AND w.observed_status = 'RUNNING' AND w.health_status = 'OK' AND w.operation = 'NONE' AND w.deleted_at IS NULL
      AND NOT EXISTS (
          SELECT FROM workspace_repositories o JOIN workspaces ow ON ow.id = o.workspace_id
          WHERE ow.owner_id = w.owner_id AND o.status = 'RUNNING'
      )
    ORDER BY w.owner_id, r.asked_at, r.workspace_id
), next AS (
    SELECT workspace_id, template FROM due ORDER BY asked_at, workspace_id LIMIT $1
)
UPDATE workspace_repositories r
SET status = 'RUNNING', epoch = $3, attempts = attempts + 1, started_at = $4
FROM next WHERE r.workspace_id = next.workspace_id AND r.status = 'WAITING'
RETURNING r.workspace_id, r.fetch_id, r.url, r.branch, r.folder, r.attempts, next.template, r.started_at;

-- name: end
UPDATE workspace_repositories SET status = $4, cause = $5, said = $6, ended_at = $7
WHERE workspace_id = $1 AND status = 'RUNNING' AND epoch = $2 AND fetch_id = $3
RETURNING started_at;

-- name: put_off
UPDATE workspace_repositories SET status = 'WAITING', epoch = NULL, cause = $4, said = $5, again_at = $6
WHERE workspace_id = $1 AND status = 'RUNNING' AND epoch = $2 AND fetch_id = $3;

-- name: open
SELECT count(*) FROM workspace_repositories WHERE status IN ('WAITING', 'RUNNING');

-- name: next_due
-- The soonest that waits for its time alone.
SELECT min(again_at) FROM workspace_repositories r JOIN workspaces w ON w.id = r.workspace_id
WHERE r.status = 'WAITING' AND r.again_at > $1 AND w.observed_status = 'RUNNING' AND w.deleted_at IS NULL;
