-- name: add
INSERT INTO course_drafts (id, owner_id, course_id, body, digest, warnings, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: forget_expired
DELETE FROM course_drafts WHERE expires_at <= $1;

-- name: one_at_a_time
SELECT pg_advisory_xact_lock(hashtextextended('course-drafts:' || $1, 0));

-- name: forget_oldest
-- All but the newest of this person.
DELETE FROM course_drafts WHERE id IN (
    SELECT id FROM course_drafts WHERE owner_id = $1 ORDER BY created_at DESC, id DESC OFFSET $2
);

-- name: find
SELECT id, course_id, body, digest, warnings, saved_as, created_at FROM course_drafts
WHERE id = $1 AND owner_id = $2 AND expires_at > $3;

-- name: lock
SELECT id FROM course_drafts WHERE id = $1 AND owner_id = $2 FOR UPDATE;

-- name: saved
UPDATE course_drafts SET body = NULL, saved_as = $2 WHERE id = $1;
