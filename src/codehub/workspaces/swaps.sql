-- name: find
SELECT s.open_id, s.sleep_id, o.name AS sleep_name, s.desired_by, codehub_actor_name(s.actor) AS actor, s.created_at, s.expires_at,
       (o.observed_status = 'RUNNING' OR (o.health_status = 'OK' AND o.deleted_at IS NULL AND o.desired_state = 'RUNNING')) AS waits
FROM workspace_swaps s JOIN workspaces o ON o.id = s.sleep_id
WHERE s.open_id = $1;

-- name: due
-- Whose first one no longer counts as running, and those that are given up.
SELECT * FROM (
    SELECT s.open_id, s.sleep_id, o.name AS sleep_name, s.desired_by, codehub_actor_name(s.actor) AS actor, s.created_at, s.expires_at,
           (o.observed_status = 'RUNNING' OR (o.health_status = 'OK' AND o.deleted_at IS NULL AND o.desired_state = 'RUNNING')) AS waits
    FROM workspace_swaps s JOIN workspaces o ON o.id = s.sleep_id
) AS swaps
WHERE NOT waits OR expires_at <= $1
ORDER BY created_at LIMIT $2;

-- name: add
INSERT INTO workspace_swaps (open_id, sleep_id, owner_id, desired_by, actor, created_at, expires_at)
VALUES ($1, $2, codehub_user_id($3), $4, codehub_actor_id($5), $6, $7);

-- name: end
DELETE FROM workspace_swaps WHERE open_id = ANY ($1::text[]) OR sleep_id = ANY ($1::text[]);

-- name: expired_lately
-- Was the last that its history says that a swap came to nothing?
SELECT code = 'swap_expired' AND at > $2 FROM workspace_history WHERE workspace_id = $1 ORDER BY id DESC LIMIT 1;
