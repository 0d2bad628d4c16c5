-- name: add
INSERT INTO audit_log (at, actor, code, subject, data, request_id, address)
VALUES ($1, codehub_actor_id($2), $3, codehub_actor_id($4), codehub_data_with_ids($5), $6, $7);

-- name: page
SELECT id, at, codehub_actor_name(actor) AS actor, code, codehub_actor_name(subject) AS subject,
       codehub_data_with_names(data) AS data, request_id, address
FROM audit_log
WHERE id < $1 AND ($2::text IS NULL OR actor = codehub_actor_id($2)) AND ($3::text IS NULL OR subject = codehub_actor_id($3))
  AND ($5::text IS NULL OR actor = codehub_actor_id($5) OR subject = codehub_actor_id($5))
  AND ($6::text[] IS NULL OR code = ANY ($6))
  AND ($7::timestamptz IS NULL OR at >= $7) AND ($8::timestamptz IS NULL OR at < $8)
ORDER BY id DESC
LIMIT $4;

-- name: forget_subject
-- What was written of a name before there was a person of that name.
UPDATE audit_log SET subject = $2 WHERE subject = ANY ($1::text[]);

-- name: mentioning
-- Lines about a person, and others whose data may hold one of their names.
SELECT id, data, actor = $1 OR subject = $1 AS about FROM audit_log
WHERE data <> '{}' AND (actor = $1 OR subject = $1 OR data::text LIKE ANY ($2::text[]));

-- name: replace_data
UPDATE audit_log SET data = $2 WHERE id = $1;

-- name: prune
DELETE FROM audit_log
WHERE id IN (SELECT id FROM audit_log WHERE at < $1 ORDER BY at LIMIT $2);
