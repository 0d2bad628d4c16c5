-- name: leave_all
DELETE FROM class_members WHERE user_id = $1;

-- name: add
INSERT INTO classes (id, title, created_by, created_at) VALUES ($1, $2, codehub_actor_id($3), $4);

-- name: one_class_at_a_time
-- Classes that one person makes are made one after the other: their number is exact.
SELECT pg_advisory_xact_lock(7235431, hashtext($1));

-- name: count_made
SELECT count(*) FROM classes WHERE created_by = codehub_actor_id($1);

-- name: find
SELECT k.id, k.title, k.created_at, k.archived_at,
       ARRAY(SELECT u.name FROM class_members m JOIN users u ON u.id = m.user_id
             WHERE m.class_id = k.id AND m.role = 'teacher' ORDER BY u.name) AS teachers,
       (SELECT count(*)::int FROM class_members m WHERE m.class_id = k.id AND m.role = 'learner') AS learners
FROM classes k WHERE k.id = $1;

-- name: lock
SELECT id FROM classes WHERE id = $1 FOR UPDATE;

-- name: role_in
SELECT role FROM class_members WHERE class_id = $1 AND user_id = $2;

-- name: page
-- Those in which this person is; null: all.
SELECT k.id, k.title, k.created_at, k.archived_at,
       ARRAY(SELECT u.name FROM class_members m JOIN users u ON u.id = m.user_id
             WHERE m.class_id = k.id AND m.role = 'teacher' ORDER BY u.name) AS teachers,
       (SELECT count(*)::int FROM class_members m WHERE m.class_id = k.id AND m.role = 'learner') AS learners
FROM classes k
WHERE ($1::text IS NULL OR EXISTS (SELECT FROM class_members m WHERE m.class_id = k.id AND m.user_id = $1))
  AND ($2 OR k.archived_at IS NULL)
  AND (k.created_at, k.id) > ($3, $4)
ORDER BY k.created_at, k.id
LIMIT $5;

-- name: change
UPDATE classes SET title = $2, archived_at = $3 WHERE id = $1;

-- name: delete
DELETE FROM classes WHERE id = $1;

-- name: members
-- In order of their names; teachers first.
SELECT m.user_id, u.name, u.display_name, m.role, m.came, m.school_id, m.joined_at, u.deactivated_at IS NULL AS active,
       greatest((SELECT max(seen_at) FROM browser_sessions s WHERE s.user_id = u.id),
                (SELECT max(last_used_at) FROM access_tokens t WHERE t.user_id = u.id)) AS last_seen_at
FROM class_members m JOIN users u ON u.id = m.user_id
WHERE m.class_id = $1 AND ($2::text IS NULL OR u.name = $2)
  AND (CASE m.role WHEN 'teacher' THEN '0' ELSE '1' END || u.name) > $3
ORDER BY CASE m.role WHEN 'teacher' THEN '0' ELSE '1' END || u.name
LIMIT $4;

-- name: of_school_ids
-- Who has these numbers: in this class, or else in another one of the same teacher ($2, if any), where the school is the same.
SELECT DISTINCT ON (m.school_id) m.school_id, m.user_id
FROM class_members m
WHERE m.school_id = ANY ($3::text[])
  AND (m.class_id = $1
       OR m.class_id IN (SELECT t.class_id FROM class_members t WHERE t.user_id = $2 AND t.role = 'teacher'))
ORDER BY m.school_id, m.class_id <> $1, m.joined_at, m.user_id;

-- name: count_members
SELECT count(*) FROM class_members WHERE class_id = $1;

-- name: add_member
-- Who is in it already stays as they are.
INSERT INTO class_members (class_id, user_id, role, came, school_id, joined_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (class_id, user_id) DO NOTHING;

-- name: looked_after
SELECT user_id FROM class_members WHERE class_id = $1 AND role = 'learner' AND came <> 'added' ORDER BY user_id;

-- name: note_school_id
-- Of a member who has none yet.
UPDATE class_members m SET school_id = $3
FROM users u WHERE u.id = m.user_id AND u.name = $2 AND m.class_id = $1 AND m.role = 'learner' AND m.school_id IS NULL;

-- name: remove_member
DELETE FROM class_members WHERE class_id = $1 AND user_id = $2;

-- name: add_invitation
INSERT INTO invitations (id, class_id, code, created_by, created_at, expires_at, max_uses)
VALUES ($1, $2, $3, codehub_actor_id($4), $5, $6, $7)
ON CONFLICT (code) DO NOTHING
RETURNING id, class_id, code, created_at, expires_at, max_uses, uses, revoked_at;

-- name: count_invitations
-- Those that are not over. The class's row is locked: exact.
SELECT count(*) FROM invitations WHERE class_id = $1 AND revoked_at IS NULL AND expires_at > $2;

-- name: page_invitations
-- Those that are not over; one that is used up is shown.
SELECT id, class_id, code, created_at, expires_at, max_uses, uses, revoked_at FROM invitations
WHERE class_id = $1 AND revoked_at IS NULL AND expires_at > $2 AND (created_at, id) > ($3, $4)
ORDER BY created_at, id
LIMIT $5;

-- name: find_invitation
SELECT id, class_id, code, created_at, expires_at, max_uses, uses, revoked_at FROM invitations WHERE code = $1;

-- name: revoke_invitation
UPDATE invitations SET revoked_at = $3 WHERE class_id = $1 AND $2 IN (id, code) AND revoked_at IS NULL RETURNING id;

-- name: use_invitation
-- The class's row is locked: of the last uses none is given twice.
UPDATE invitations SET uses = uses + 1
WHERE id = $1 AND revoked_at IS NULL AND expires_at > $2 AND (max_uses IS NULL OR uses < max_uses)
RETURNING id;

-- name: prune_invitations
DELETE FROM invitations
WHERE id IN (SELECT id FROM invitations WHERE least(revoked_at, expires_at) < $1 ORDER BY expires_at LIMIT $2);

-- name: titles
SELECT id, title FROM classes WHERE id = ANY ($1::text[]);
