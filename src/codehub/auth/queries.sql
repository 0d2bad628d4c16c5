-- name: find_user
SELECT id, name, role, created_at, last_login_at, deactivated_at FROM users WHERE name = $1;

-- name: find_person
SELECT id, name, role, created_at, last_login_at, deactivated_at FROM users WHERE id = $1;

-- name: lock_user
SELECT id, name, role, created_at, last_login_at, deactivated_at FROM users WHERE name = $1 FOR UPDATE;

-- name: one_name_at_a_time
-- Names are given one after the other: two who want the same one do not both find it free.
SELECT pg_advisory_xact_lock(7235418);

-- name: add_user
-- A name that was ever given is not given again: what others know by it stays that person's.
INSERT INTO users (name, role, created_at) SELECT $1, $2, $3
WHERE NOT EXISTS (SELECT FROM former_names WHERE name = $1)
ON CONFLICT (name) DO NOTHING
RETURNING id, name, role, created_at, last_login_at, deactivated_at;

-- name: page_users
SELECT id, name, role, created_at, last_login_at, deactivated_at
FROM users
WHERE name > $1 AND ($2::text IS NULL OR role = $2)
ORDER BY name
LIMIT $3;

-- name: rename_user
WITH was AS (
    INSERT INTO former_names (name, user_id) SELECT name, id FROM users WHERE id = $1 ON CONFLICT DO NOTHING
)
UPDATE users SET name = $2
WHERE id = $1
  AND NOT EXISTS (SELECT FROM former_names WHERE name = $2 AND user_id <> $1)
  AND NOT EXISTS (SELECT FROM users WHERE name = $2)
RETURNING id, name, role, created_at, last_login_at, deactivated_at;

-- name: change_user
UPDATE users SET role = $2, deactivated_at = $3 WHERE id = $1
RETURNING id, name, role, created_at, last_login_at, deactivated_at;

-- name: lock_admins
-- Locks every active admin, in one order, so that two demotions at once cannot both see the other as remaining.
SELECT id FROM users WHERE role = 'admin' AND deactivated_at IS NULL ORDER BY id FOR UPDATE;

-- name: note_login
UPDATE users SET last_login_at = $2 WHERE id = $1;

-- name: drop_links
DELETE FROM login_links WHERE user_id = $1 AND used_at IS NULL;

-- name: add_link
INSERT INTO login_links (token_hash, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4);

-- name: owner_of_link
SELECT u.name FROM login_links l JOIN users u ON u.id = l.user_id
WHERE l.token_hash = $1 AND l.used_at IS NULL AND l.expires_at > $2;

-- name: use_link
UPDATE login_links SET used_at = $2 WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2;

-- name: add_session
INSERT INTO browser_sessions (id, user_id, generation, confirmed, created_at, rotated_at, confirmed_at, seen_at,
                              expires_at, user_agent)
VALUES ($1, $2, 1, 1, $3, $3, $3, $3, $4, $5);

-- name: find_session
SELECT id, user_id, generation, confirmed, created_at, rotated_at, confirmed_at, seen_at, expires_at, user_agent,
       revoked_at
FROM browser_sessions WHERE id = $1;

-- name: touch_session
UPDATE browser_sessions SET seen_at = $2, expires_at = $3 WHERE id = $1 AND revoked_at IS NULL;

-- name: confirm_session
UPDATE browser_sessions SET confirmed = $2, confirmed_at = $3, seen_at = $3, expires_at = $4
WHERE id = $1 AND confirmed < $2 AND revoked_at IS NULL;

-- name: rotate_session
-- Only from the generation that was judged: of two requests at once one rotates, the other finds it done.
UPDATE browser_sessions SET generation = generation + 1, rotated_at = $3, seen_at = $3, expires_at = $4
WHERE id = $1 AND generation = $2 AND revoked_at IS NULL;

-- name: revoke_session
UPDATE browser_sessions SET revoked_at = $3 WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL;

-- name: revoke_sessions_of
UPDATE browser_sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL;

-- name: page_sessions
SELECT id, user_id, generation, confirmed, created_at, rotated_at, confirmed_at, seen_at, expires_at, user_agent,
       revoked_at
FROM browser_sessions
WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $2 AND (created_at, id) > ($3, $4)
ORDER BY created_at, id
LIMIT $5;

-- name: add_token
INSERT INTO access_tokens (id, user_id, label, secret_hash, scopes, created_at, created_by, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, codehub_actor_id($7), $8)
RETURNING id, user_id, label, secret_hash, scopes, created_at, codehub_actor_name(created_by) AS created_by, expires_at, last_used_at,
       revoked_at;

-- name: count_tokens
-- Those that work. The person's row is locked: exact.
SELECT count(*) FROM access_tokens WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $2;

-- name: find_token
SELECT id, user_id, label, secret_hash, scopes, created_at, codehub_actor_name(created_by) AS created_by, expires_at, last_used_at,
       revoked_at
FROM access_tokens WHERE id = $1;

-- name: note_token_use
UPDATE access_tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2);

-- name: revoke_token
UPDATE access_tokens SET revoked_at = $3 WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL;

-- name: revoke_tokens_of
UPDATE access_tokens SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL;

-- name: page_tokens
SELECT id, user_id, label, secret_hash, scopes, created_at, codehub_actor_name(created_by) AS created_by, expires_at, last_used_at,
       revoked_at
FROM access_tokens
WHERE user_id = $1 AND revoked_at IS NULL AND (created_at, id) > ($2, $3)
ORDER BY created_at, id
LIMIT $4;

-- name: announce
SELECT pg_notify('codehub_auth', '');

-- name: prune_links
DELETE FROM login_links
WHERE token_hash IN (SELECT token_hash FROM login_links WHERE expires_at < $1 ORDER BY expires_at LIMIT $2);

-- name: prune_sessions
DELETE FROM browser_sessions
WHERE id IN (SELECT id FROM browser_sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2);

-- name: prune_tokens
DELETE FROM access_tokens
WHERE id IN (SELECT id FROM access_tokens WHERE expires_at < $1 ORDER BY expires_at LIMIT $2);

-- name: standing
-- Of these sessions and tokens those that are good now, with what their people are.
SELECT s.id, u.role FROM browser_sessions s JOIN users u ON u.id = s.user_id
WHERE s.id = ANY ($1::text[]) AND s.revoked_at IS NULL AND s.expires_at > $2 AND u.deactivated_at IS NULL
UNION ALL
SELECT t.id, u.role FROM access_tokens t JOIN users u ON u.id = t.user_id
WHERE t.id = ANY ($1::text[]) AND t.revoked_at IS NULL AND t.expires_at > $2 AND u.deactivated_at IS NULL;

-- name: revoked_since
-- Of those that would still be good.
SELECT id, expires_at FROM browser_sessions WHERE revoked_at >= $1 AND expires_at > $2
UNION ALL
SELECT id, expires_at FROM access_tokens WHERE revoked_at >= $1 AND expires_at > $2;
