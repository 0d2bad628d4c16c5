-- name: add
INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count, label, transports, belongs_to, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (credential_id) DO NOTHING
RETURNING id, user_id, credential_id, public_key, sign_count, label, transports, belongs_to, created_at, last_used_at, blocked_at;

-- name: of_user
SELECT id, user_id, credential_id, public_key, sign_count, label, transports, belongs_to, created_at, last_used_at, blocked_at
FROM passkeys WHERE user_id = $1 ORDER BY created_at, id;

-- name: page
SELECT id, user_id, credential_id, public_key, sign_count, label, transports, belongs_to, created_at, last_used_at, blocked_at
FROM passkeys WHERE user_id = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4;

-- name: find
SELECT id, user_id, credential_id, public_key, sign_count, label, transports, belongs_to, created_at, last_used_at, blocked_at
FROM passkeys WHERE id = $1 AND user_id = $2;

-- name: find_credential
SELECT id, user_id, credential_id, public_key, sign_count, label, transports, belongs_to, created_at, last_used_at, blocked_at
FROM passkeys WHERE credential_id = $1;

-- name: owner_name
SELECT name FROM users WHERE id = $1;

-- name: note_use
UPDATE passkeys SET sign_count = $2, last_used_at = $3 WHERE id = $1;

-- name: block
UPDATE passkeys SET blocked_at = $2 WHERE id = $1 AND blocked_at IS NULL;

-- name: rename
UPDATE passkeys SET label = $2 WHERE id = $1;

-- name: remove
DELETE FROM passkeys WHERE id = $1;
