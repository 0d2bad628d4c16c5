-- name: one_at_a_time
SELECT pg_advisory_xact_lock(hashtext('codehub_bulk'));

-- name: count_open
SELECT count(*) FROM bulk_actions WHERE finished_at IS NULL;

-- name: prune
DELETE FROM bulk_actions
WHERE id IN (SELECT id FROM bulk_actions WHERE created_at < $1 AND finished_at IS NOT NULL ORDER BY created_at LIMIT 100);

-- name: add
INSERT INTO bulk_actions (id, verb, actor, matched, created_at, expires_at)
VALUES ($1, $2, codehub_actor_id($3), $4, $5, $6);

-- name: add_items
INSERT INTO bulk_items (bulk_id, place, workspace_id, again_at)
SELECT $1, row_number() OVER (ORDER BY wanted.place), w.id, $3
FROM unnest($2::text[]) WITH ORDINALITY AS wanted (id, place) JOIN workspaces w ON w.id = wanted.id;

-- name: find
SELECT id, verb, codehub_actor_name(actor) AS actor, matched, created_at, expires_at, finished_at
FROM bulk_actions WHERE id = $1;

-- name: newest
SELECT id, verb, codehub_actor_name(actor) AS actor, matched, created_at, expires_at, finished_at
FROM bulk_actions ORDER BY created_at DESC LIMIT $1;

-- name: items
SELECT i.workspace_id, w.name, codehub_user_name(w.owner_id) AS owner, w.phase, w.deleted_at IS NOT NULL AS in_trash, i.outcome, i.code
FROM bulk_items i JOIN workspaces w ON w.id = i.workspace_id
WHERE i.bulk_id = $1 ORDER BY i.place;

-- name: due
SELECT i.bulk_id, i.place, i.workspace_id, b.verb, b.actor, b.expires_at
FROM bulk_items i JOIN bulk_actions b ON b.id = i.bulk_id
WHERE i.outcome IS NULL AND i.again_at <= $1
ORDER BY i.again_at, b.created_at, i.place LIMIT $2;

-- name: next_due
SELECT min(again_at) FROM bulk_items WHERE outcome IS NULL;

-- name: who
SELECT name, role FROM users WHERE id = $1 AND deactivated_at IS NULL AND removed_at IS NULL;

-- name: put_off
UPDATE bulk_items SET again_at = $3 WHERE bulk_id = $1 AND place = $2 AND outcome IS NULL;

-- name: settle
UPDATE bulk_items SET outcome = $3, code = $4 WHERE bulk_id = $1 AND place = $2 AND outcome IS NULL;

-- name: finish
UPDATE bulk_actions b SET finished_at = $1
WHERE finished_at IS NULL AND NOT EXISTS (SELECT FROM bulk_items i WHERE i.bulk_id = b.id AND i.outcome IS NULL);
