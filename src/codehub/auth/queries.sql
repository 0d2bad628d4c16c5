-- name: find_user
SELECT id, name, display_name, role, language, time_zone, created_at, last_login_at, deactivated_at, removed_at FROM users WHERE name = $1 AND removed_at IS NULL;

-- name: find_person
SELECT id, name, display_name, role, language, time_zone, created_at, last_login_at, deactivated_at, removed_at FROM users WHERE id = $1;

-- name: lock_user
SELECT id, name, display_name, role, language, time_zone, created_at, last_login_at, deactivated_at, removed_at FROM users WHERE name = $1 AND removed_at IS NULL FOR UPDATE;

-- name: one_name_at_a_time
-- Names are given one after the other: two who want the same one do not both find it free.
SELECT pg_advisory_xact_lock(7235418);

-- name: add_user
-- A name that was ever given is not given again: what others know by it stays that person's.
INSERT INTO users (id, name, role, created_at, display_name)
SELECT coalesce($5, 'u' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 15)), $1, $2, $3, $4
WHERE NOT EXISTS (SELECT FROM former_names WHERE name IN ($1, codehub_name_hash($1)))
ON CONFLICT (name) DO NOTHING
RETURNING id, name, display_name, role, language, time_zone, created_at, last_login_at, deactivated_at, removed_at;

-- name: note_maker
UPDATE users SET made_by = $2 WHERE id = $1;

-- name: one_maker_at_a_time
-- Accounts that one person makes are made one after the other: their number is exact.
SELECT pg_advisory_xact_lock(7235432, hashtext($1));

-- name: count_made
SELECT count(*) FROM users WHERE made_by = $1 AND removed_at IS NULL;

-- name: taken_names
SELECT n AS name FROM unnest($1::text[]) n
WHERE EXISTS (SELECT FROM users WHERE name = n)
   OR EXISTS (SELECT FROM former_names WHERE name IN (n, codehub_name_hash(n)));

-- name: page_users
SELECT id, name, display_name, role, language, time_zone, created_at, last_login_at, deactivated_at, removed_at
FROM users
WHERE name > $1 AND removed_at IS NULL AND ($3::text IS NULL OR role = $3)
  AND ($4::text = '' OR position(lower($4) IN lower(name)) > 0 OR position(lower($4) IN lower(display_name)) > 0)
  AND ($5::boolean IS NULL OR (deactivated_at IS NULL) = $5)
ORDER BY name
LIMIT $2;

-- name: rename_user
WITH was AS (
    INSERT INTO former_names (name, user_id) SELECT name, id FROM users WHERE id = $1 ON CONFLICT DO NOTHING
)
UPDATE users SET name = $2
WHERE id = $1
  AND NOT EXISTS (SELECT FROM former_names WHERE name IN ($2, codehub_name_hash($2)) AND user_id <> $1)
  AND NOT EXISTS (SELECT FROM users WHERE name = $2)
RETURNING id, name, display_name, role, language, time_zone, created_at, last_login_at, deactivated_at, removed_at;

-- name: change_user
UPDATE users SET role = $2, deactivated_at = $3 WHERE id = $1
RETURNING id, name, display_name, role, language, time_zone, created_at, last_login_at, deactivated_at, removed_at;

-- name: change_profile
UPDATE users SET display_name = $2, language = $3, time_zone = $4 WHERE id = $1;

-- name: taught_by
-- Of each learner: are they looked after by this teacher, as an account made in a class of theirs or joined through it?
SELECT u.name, bool_or(t.came <> 'added') AS managed
FROM teaching t JOIN users u ON u.id = t.learner_id
WHERE t.teacher_id = $1 GROUP BY u.name;

-- name: attends
SELECT EXISTS (SELECT FROM class_members WHERE user_id = $1);

-- name: called
SELECT name, display_name FROM users WHERE name = ANY ($1::text[]) AND display_name <> '';

-- name: lock_admins
-- Locks every active admin, in one order, so that two demotions at once cannot both see the other as remaining.
SELECT id FROM users WHERE role = 'admin' AND deactivated_at IS NULL ORDER BY id FOR UPDATE;

-- name: note_login
UPDATE users SET last_login_at = $2 WHERE id = $1;

-- name: drop_links
DELETE FROM login_links WHERE user_id = $1 AND used_at IS NULL;

-- name: drop_links_of_all
DELETE FROM login_links WHERE user_id = ANY ($1::text[]) AND used_at IS NULL;

-- name: add_link
INSERT INTO login_links (token_hash, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4);

-- name: owner_of_link
SELECT u.name FROM login_links l JOIN users u ON u.id = l.user_id
WHERE l.token_hash = $1 AND l.used_at IS NULL AND l.expires_at > $2;

-- name: is_link_of
-- Also when it was used, or is too old.
SELECT EXISTS (SELECT FROM login_links WHERE token_hash = $1 AND user_id = $2);

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

-- name: revoke_other_sessions
UPDATE browser_sessions SET revoked_at = $3 WHERE user_id = $1 AND id <> $2 AND revoked_at IS NULL;

-- name: ways_in
-- Those that work: of passkeys, which belong to this name; of logins elsewhere, those of these issuers.
SELECT EXISTS (SELECT FROM passwords WHERE user_id = $1) AS has_password,
       (SELECT count(*)::int FROM passkeys WHERE user_id = $1 AND blocked_at IS NULL AND belongs_to = $3) AS passkeys,
       (SELECT count(*)::int FROM identities WHERE user_id = $1 AND issuer = ANY ($2::text[])) AS identities;

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

-- name: former_names
SELECT name FROM former_names WHERE user_id = $1 AND NOT is_hashed;

-- name: hash_names
WITH gone AS (DELETE FROM former_names WHERE user_id = $1 AND NOT is_hashed RETURNING name)
INSERT INTO former_names (name, user_id, is_hashed)
SELECT codehub_name_hash(name), $1, true FROM (SELECT name FROM gone UNION SELECT name FROM users WHERE id = $1) AS had;

-- name: forget_passwords
DELETE FROM passwords WHERE user_id = $1;

-- name: forget_passkeys
DELETE FROM passkeys WHERE user_id = $1;

-- name: forget_identities
DELETE FROM identities WHERE user_id = $1;

-- name: forget_links
DELETE FROM login_links WHERE user_id = $1;

-- name: forget_sessions
-- They are over. The rows stay until they would have expired: proxies know by them which passes are worth nothing.
UPDATE browser_sessions SET user_agent = '' WHERE user_id = $1;

-- name: forget_tokens
UPDATE access_tokens SET label = '' WHERE user_id = $1;

-- name: forget_user
UPDATE users
SET name = $2, display_name = '', language = NULL, time_zone = NULL, role = 'learner', last_login_at = NULL,
    deactivated_at = coalesce(deactivated_at, $3), removed_at = $3
WHERE id = $1;

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

-- name: password_of
-- Of a person who may log in.
SELECT p.user_id, p.hash, p.changed_at FROM users u JOIN passwords p ON p.user_id = u.id
WHERE u.name = $1 AND u.deactivated_at IS NULL AND u.removed_at IS NULL;

-- name: set_password
-- Its time says which password it is: never the same for two, also where a clock was set back.
INSERT INTO passwords (user_id, hash, changed_at, changed_by) VALUES ($1, $2, $3, codehub_actor_id($4))
ON CONFLICT (user_id) DO UPDATE
SET hash = $2, changed_at = greatest($3, passwords.changed_at + interval '1 microsecond'), changed_by = codehub_actor_id($4);

-- name: rehash_password
-- The same password in a costlier form: no change that anyone is told of.
UPDATE passwords SET hash = $3 WHERE user_id = $1 AND hash = $2;

-- name: drop_password_of_teacher
-- One that a teacher has set. What an admin has set, the operator or the person themselves, stays.
DELETE FROM passwords p USING users u WHERE p.user_id = $1 AND u.id = p.changed_by AND u.id <> p.user_id AND u.role <> 'admin';

-- name: drop_password
DELETE FROM passwords WHERE user_id = $1;

-- name: first_steps_open
SELECT first_steps_over_at IS NULL FROM users WHERE id = $1 AND name = $2;

-- name: never_logged_in
SELECT last_login_at IS NULL AND first_steps_over_at IS NULL FROM users WHERE name = $1;

-- name: end_first_steps
UPDATE users SET first_steps_over_at = $2 WHERE id = $1 AND first_steps_over_at IS NULL;
