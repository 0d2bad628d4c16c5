-- name: add
INSERT INTO audit_log (at, actor, code, subject, data, request_id, address)
VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: page
SELECT id, at, actor, code, subject, data, request_id, address
FROM audit_log
WHERE id < $1 AND ($2::text IS NULL OR actor = $2) AND ($3::text IS NULL OR subject = $3)
ORDER BY id DESC
LIMIT $4;

-- name: prune
DELETE FROM audit_log
WHERE id IN (SELECT id FROM audit_log WHERE at < $1 ORDER BY at LIMIT $2);
