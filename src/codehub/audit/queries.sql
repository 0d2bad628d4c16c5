-- name: add
INSERT INTO audit_log (at, actor, code, subject, data, request_id, address)
VALUES ($1, codehub_actor_id($2), $3, codehub_actor_id($4), codehub_data_with_ids($5), $6, $7);

-- name: page
SELECT id, at, codehub_actor_name(actor) AS actor, code, codehub_actor_name(subject) AS subject,
       codehub_data_with_names(data) AS data, request_id, address
FROM audit_log
WHERE id < $1 AND ($2::text IS NULL OR actor = codehub_actor_id($2)) AND ($3::text IS NULL OR subject = codehub_actor_id($3))
ORDER BY id DESC
LIMIT $4;

-- name: prune
DELETE FROM audit_log
WHERE id IN (SELECT id FROM audit_log WHERE at < $1 ORDER BY at LIMIT $2);
