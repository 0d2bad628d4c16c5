-- name: add
INSERT INTO courses (id, owner_id, key, language, version, is_shipped, created_at, changed_at)
VALUES ($1, $2, $3, $4, 1, $5, $6, $6)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: add_version
INSERT INTO course_versions (course_id, version, title, description, author, digest, created_by, created_at)
VALUES ($1, $2, $3, $4, $5, $6, codehub_actor_id($7), $8);

-- name: add_sessions
INSERT INTO course_sessions (course_id, version, position, key, title, day, steps, blueprint_hash)
SELECT $1, $2, n.number - 1, n.key, n.title, n.day, string_to_array(n.steps, ' '), n.blueprint_hash
FROM unnest($3::text[], $4::text[], $5::int[], $6::text[], $7::text[])
    WITH ORDINALITY AS n (key, title, day, steps, blueprint_hash, number);

-- name: change
UPDATE courses SET key = $2, language = $3, version = $4, changed_at = $5 WHERE id = $1;

-- name: withdraw
UPDATE courses SET withdrawn_at = $2 WHERE id = $1;

-- name: is_course
SELECT EXISTS (SELECT FROM courses WHERE id = $1);

-- name: owner
SELECT id FROM users WHERE name = $1 AND deactivated_at IS NULL;

-- name: one_course_at_a_time
SELECT pg_advisory_xact_lock(hashtextextended('courses:' || $1, 0));

-- name: count
SELECT count(*) FROM courses WHERE owner_id = $1;

-- name: by_key
-- Whose key this is: of another course than $5.
SELECT id FROM courses
WHERE coalesce(owner_id, '') = coalesce($1, '') AND is_shipped = $2 AND key = $3 AND language = $4
  AND id IS DISTINCT FROM $5::text;

-- name: lock
SELECT id FROM courses WHERE id = $1 FOR UPDATE;

-- name: hold
-- While a plan is made from it: a new version waits, and reaches that plan too.
SELECT id FROM courses WHERE id = $1 FOR SHARE;

-- name: find
SELECT c.id, u.name AS owner, c.key, c.language, v.version, c.is_shipped, v.title, v.description, v.author,
       (SELECT count(*) FROM course_sessions s WHERE s.course_id = c.id AND s.version = v.version) AS sessions,
       v.digest, c.created_at, c.changed_at, c.withdrawn_at
FROM courses c
JOIN course_versions v ON v.course_id = c.id AND v.version = coalesce($2, c.version)
LEFT JOIN users u ON u.id = c.owner_id
WHERE c.id = $1;

-- name: languages
SELECT id, language FROM courses WHERE id = ANY ($1::text[]);

-- name: owner_id
SELECT owner_id FROM courses WHERE id = $1;

-- name: page
-- Those that are withdrawn only to $7 who owns them; null: all.
SELECT c.id, u.name AS owner, c.key, c.language, c.version, c.is_shipped, v.title, v.description, v.author,
       (SELECT count(*) FROM course_sessions s WHERE s.course_id = c.id AND s.version = v.version) AS sessions,
       v.digest, c.created_at, c.changed_at, c.withdrawn_at
FROM courses c
JOIN course_versions v ON v.course_id = c.id AND v.version = c.version
LEFT JOIN users u ON u.id = c.owner_id
WHERE ($1::text IS NULL OR c.language = $1) AND ($2::text IS NULL OR u.name = $2) AND ($3::text IS NULL OR c.key = $3)
  AND (c.created_at, c.id) > ($4, $5)
  AND (c.withdrawn_at IS NULL OR $7::text IS NULL OR u.name = $7)
ORDER BY c.created_at, c.id
LIMIT $6;

-- name: lessons
SELECT key, title, day, steps, blueprint_hash FROM course_sessions
WHERE course_id = $1 AND version = $2
ORDER BY position;

-- name: shipped
SELECT c.id, c.key, c.language, v.digest
FROM courses c JOIN course_versions v ON v.course_id = c.id AND v.version = c.version
WHERE c.is_shipped;

-- name: versions
-- The newest first, from $2 on.
SELECT version, title, description, author, codehub_actor_name(created_by) AS created_by, created_at
FROM course_versions WHERE course_id = $1 AND version <= $2
ORDER BY version DESC LIMIT $3;

-- name: lessons_of_versions
SELECT version, key, title, day, steps, blueprint_hash FROM course_sessions
WHERE course_id = $1 AND version = ANY ($2::int[])
ORDER BY version, position;
