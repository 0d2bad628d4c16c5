-- What the first admin is shown after the first login, until they say that it is enough. Where people have logged in
-- before, everything is known already.
ALTER TABLE users ADD COLUMN first_steps_over_at timestamptz;
UPDATE users SET first_steps_over_at = last_login_at WHERE last_login_at IS NOT NULL;
UPDATE users SET first_steps_over_at = now()
WHERE first_steps_over_at IS NULL AND EXISTS (SELECT FROM users WHERE last_login_at IS NOT NULL);
