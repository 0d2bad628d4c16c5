-- name: page_points
-- Newest first: the last $5, and the one that the home goes back to. What is condemned has no line here any more.
SELECT p.archive_key, p.workspace_id, p.op_id, p.created_at, p.size, p.content_bytes, p.files
FROM (SELECT *, row_number() OVER (ORDER BY created_at DESC, archive_key DESC) AS place
      FROM restore_points WHERE workspace_id = $1) AS p
JOIN workspaces w ON w.id = p.workspace_id
WHERE (p.place <= $5 OR p.archive_key IN (w.archive_key, w.restore_from))
  AND ($2::timestamptz IS NULL OR (p.created_at, p.op_id) < ($2, $3))
ORDER BY p.created_at DESC, p.op_id DESC
LIMIT $4;

-- name: find_point
SELECT archive_key, workspace_id, op_id, created_at, size, content_bytes, files FROM restore_points
WHERE workspace_id = $1 AND archive_key = $2;

-- name: note_point
INSERT INTO restore_points (archive_key, workspace_id, op_id, created_at, size, content_bytes, files)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (workspace_id, op_id) DO UPDATE
SET archive_key = excluded.archive_key, created_at = excluded.created_at, size = excluded.size,
    content_bytes = excluded.content_bytes, files = excluded.files;

-- name: adopt_point
-- One that the database did not know. What it knows already stays as it is.
INSERT INTO restore_points (archive_key, workspace_id, op_id, created_at, size, content_bytes, files)
SELECT $1, id, $3, $4, $5, $6, $7 FROM workspaces WHERE id = $2 AND NOT purge
ON CONFLICT DO NOTHING
RETURNING archive_key;

-- name: request_restore
-- An error is cleared with it, as by recovering.
UPDATE workspaces
SET restore_from = $2, desired_state = $3, desired_by = $4, desired_at = $5, updated_at = $5, attention_at = $5,
    health_status = 'OK', error_info = NULL, failures = 0,
    last_access_at = CASE WHEN $3 = 'RUNNING' THEN greatest(last_access_at, $5) ELSE last_access_at END
WHERE id = $1
RETURNING *, codehub_user_name(owner_id) AS owner;
