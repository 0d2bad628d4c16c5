-- name: one_subject_at_a_time
-- Two first logins of one person at once, from two devices, make one account.
SELECT pg_advisory_xact_lock(7235447, hashtext($1));

-- name: find
SELECT id, user_id, provider, issuer, subject, label, email, role_given, created_at, last_used_at
FROM identities WHERE issuer = $1 AND subject = $2;

-- name: of_person
SELECT id, user_id, provider, issuer, subject, label, email, role_given, created_at, last_used_at
FROM identities WHERE user_id = $1 ORDER BY created_at, id;

-- name: people_with_email
-- Of logins of these providers, whose e-mails the operator trusts. More than one person: it says nothing.
SELECT DISTINCT user_id FROM identities WHERE email = $1 AND issuer = ANY ($2::text[]) LIMIT 2;

-- name: add
INSERT INTO identities (id, user_id, provider, issuer, subject, label, email, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING id, user_id, provider, issuer, subject, label, email, role_given, created_at, last_used_at;

-- name: note_use
UPDATE identities SET provider = $2, label = $3, email = $4, last_used_at = $5 WHERE id = $1;

-- name: note_role
UPDATE identities SET role_given = $2 WHERE id = $1;

-- name: remove
DELETE FROM identities WHERE id = $1 AND user_id = $2;

-- name: classes_of
SELECT class_id FROM identity_classes WHERE identity_id = $1;

-- name: add_class
INSERT INTO identity_classes (identity_id, class_id) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: remove_class
DELETE FROM identity_classes WHERE identity_id = $1 AND class_id = $2;

-- name: note_login
INSERT INTO provider_logins (session_id, identity_id, sealed_id_token) VALUES ($1, $2, $3) ON CONFLICT (session_id) DO NOTHING;

-- name: login_of
SELECT i.issuer, l.sealed_id_token FROM provider_logins l JOIN identities i ON i.id = l.identity_id WHERE l.session_id = $1;

-- name: forget_login
DELETE FROM provider_logins WHERE session_id = $1;
