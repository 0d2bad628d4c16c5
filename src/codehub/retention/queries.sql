-- name: facts
SELECT id, archive_key, restore_from, volume_generation, op_id, operation, health_status, observed_status, deleted_at, purge
FROM workspaces WHERE id = ANY ($1::text[]);

-- name: lock_facts
-- The request to go back to a restore point holds this row meanwhile.
SELECT id, archive_key, restore_from, volume_generation, op_id, operation, health_status, observed_status, deleted_at, purge
FROM workspaces WHERE id = $1 FOR UPDATE;

-- name: points
SELECT workspace_id, archive_key, op_id,
       row_number() OVER (PARTITION BY workspace_id ORDER BY created_at DESC, archive_key DESC) AS place
FROM restore_points WHERE workspace_id = ANY ($1::text[]);

-- name: note_orphans
INSERT INTO orphans (kind, name, workspace_id, rule, bytes, seen_at)
SELECT $1, *, $6 FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[])
ON CONFLICT (kind, name) DO UPDATE SET rule = excluded.rule, bytes = excluded.bytes;

-- name: forget_orphans
-- Somebody needs them after all.
DELETE FROM orphans WHERE kind = $1 AND name = ANY ($2::text[]) AND condemned_at IS NULL;

-- name: condemned
SELECT name FROM orphans WHERE kind = 'archive' AND name = ANY ($1::text[]) AND condemned_at IS NOT NULL;

-- name: due_orphans
SELECT kind, name, workspace_id, rule, bytes, seen_at, condemned_at FROM orphans
WHERE (seen_at <= $1 OR condemned_at IS NOT NULL) AND kind = ANY ($2::text[])
  AND NOT (kind = 'archive' AND name = ANY ($3::text[])) AND NOT (kind = 'volume' AND name = ANY ($4::text[]))
ORDER BY seen_at, kind, name LIMIT $5;

-- name: orphans_seen
SELECT kind, name, seen_at FROM orphans WHERE name = ANY ($1::text[]);

-- name: waiting
SELECT count(*) FROM orphans;

-- name: condemn
UPDATE orphans SET condemned_at = coalesce(condemned_at, $3) WHERE kind = $1 AND name = $2;

-- name: drop_point
DELETE FROM restore_points WHERE archive_key = $1;

-- name: gone
DELETE FROM orphans WHERE kind = $1 AND name = $2 RETURNING true;

-- name: platform
SELECT id FROM platform;

-- name: trash_due
SELECT id, purge, deleted_at FROM workspaces
WHERE deleted_at IS NOT NULL AND emptied_at IS NULL AND observed_status = 'DELETED' AND operation = 'NONE'
  AND (purge OR deleted_at <= $1) AND NOT (id = ANY ($2::text[])) AND coalesce(node, $4) = $4
ORDER BY deleted_at LIMIT $3;

-- name: expire
-- From here on it cannot be brought back. The same conditions as above, on the locked row.
UPDATE workspaces SET purge = true, updated_at = $3
WHERE id = $1 AND deleted_at IS NOT NULL AND emptied_at IS NULL AND observed_status = 'DELETED' AND operation = 'NONE'
  AND (purge OR deleted_at <= $2)
RETURNING id;

-- name: drop_points_of
DELETE FROM restore_points WHERE workspace_id = $1;

-- name: emptied
UPDATE workspaces
SET emptied_at = $2, updated_at = $2, archive_key = NULL, restore_from = NULL, volume_generation = NULL,
    volume_parked = false, disk_bytes = NULL, node = NULL
WHERE id = $1 AND purge AND observed_status = 'DELETED' AND operation = 'NONE'
RETURNING id;

-- name: collect_now
SELECT pg_notify('codehub_gc', '');

-- name: sizes_of
SELECT id, disk_bytes FROM workspaces WHERE id = ANY ($1::text[]);

-- name: preview
SELECT asked_at, made_at, things, total, bytes FROM storage_preview;

-- name: ask_preview
INSERT INTO storage_preview (asked_at) VALUES ($1) ON CONFLICT (is_the_one) DO UPDATE SET asked_at = excluded.asked_at;

-- name: preview_is_asked
SELECT asked_at IS NOT NULL AND (made_at IS NULL OR made_at < asked_at) FROM storage_preview;

-- name: save_preview
-- Who asked again meanwhile is answered by the next look.
UPDATE storage_preview SET made_at = $1, things = $2, total = $3, bytes = $4;

-- name: wake_coordinator
SELECT pg_notify('codehub_requests', '');
