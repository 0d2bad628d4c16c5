-- A person is an opaque id; the name is what others call them. Credentials stand on the id, so that somebody can be renamed.
ALTER TABLE users ADD COLUMN id text NOT NULL DEFAULT 'u' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 15);

ALTER TABLE login_links ADD COLUMN user_id text;
ALTER TABLE browser_sessions ADD COLUMN user_id text;
ALTER TABLE access_tokens ADD COLUMN user_id text;
UPDATE login_links l SET user_id = u.id FROM users u WHERE u.name = l.user_name;
UPDATE browser_sessions s SET user_id = u.id FROM users u WHERE u.name = s.user_name;
UPDATE access_tokens t SET user_id = u.id FROM users u WHERE u.name = t.user_name;
ALTER TABLE login_links DROP COLUMN user_name;
ALTER TABLE browser_sessions DROP COLUMN user_name;
ALTER TABLE access_tokens DROP COLUMN user_name;

ALTER TABLE workspaces DROP CONSTRAINT workspaces_owner_fkey;
ALTER TABLE users DROP CONSTRAINT users_pkey;
ALTER TABLE users ADD PRIMARY KEY (id);
ALTER TABLE users ADD UNIQUE (name);
ALTER TABLE workspaces ADD FOREIGN KEY (owner) REFERENCES users (name);

ALTER TABLE login_links ALTER COLUMN user_id SET NOT NULL, ADD FOREIGN KEY (user_id) REFERENCES users;
ALTER TABLE browser_sessions ALTER COLUMN user_id SET NOT NULL, ADD FOREIGN KEY (user_id) REFERENCES users;
ALTER TABLE access_tokens ALTER COLUMN user_id SET NOT NULL, ADD FOREIGN KEY (user_id) REFERENCES users;
CREATE INDEX login_links_by_user ON login_links (user_id);
CREATE INDEX browser_sessions_by_user ON browser_sessions (user_id, created_at, id);
CREATE INDEX access_tokens_by_user ON access_tokens (user_id, created_at, id);
