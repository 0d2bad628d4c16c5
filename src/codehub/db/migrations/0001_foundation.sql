-- People, how they log in, what they did, and who leads.

CREATE TABLE users (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    role text NOT NULL CHECK (role IN ('admin', 'teacher', 'learner')),
    created_at timestamptz NOT NULL,
    last_login_at timestamptz,
    deactivated_at timestamptz
);

-- Only the hash is kept: whoever reads this table cannot log in with it.
CREATE TABLE login_links (
    token_hash bytea PRIMARY KEY,
    user_name text NOT NULL REFERENCES users,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX login_links_by_user ON login_links (user_name);
CREATE INDEX login_links_by_expiry ON login_links (expires_at);

-- The cookie is signed and names a generation. A rotation raises `generation`; `confirmed` is the highest one a browser
-- has come back with, so that a browser which never received the new cookie is not taken for a thief.
CREATE TABLE browser_sessions (
    id text PRIMARY KEY,
    user_name text NOT NULL REFERENCES users,
    generation int NOT NULL,
    confirmed int NOT NULL,
    created_at timestamptz NOT NULL,
    rotated_at timestamptz NOT NULL,
    confirmed_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    user_agent text NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX browser_sessions_by_user ON browser_sessions (user_name, created_at, id);
CREATE INDEX browser_sessions_by_expiry ON browser_sessions (expires_at);

CREATE TABLE access_tokens (
    id text PRIMARY KEY,
    user_name text NOT NULL REFERENCES users,
    label text NOT NULL,
    secret_hash bytea NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    expires_at timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX access_tokens_by_user ON access_tokens (user_name, created_at, id);
CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_at);

CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    detail jsonb NOT NULL,
    request_id text,
    address text
);
CREATE INDEX audit_log_by_time ON audit_log (at);

-- Leases. `epoch` is in a unique key on purpose: taking over changes a key and therefore waits for every transaction
-- that holds FOR KEY SHARE on the row, while a renewal changes no key and waits for nobody.
CREATE TABLE system_locks (
    name text PRIMARY KEY,
    holder text NOT NULL,
    epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    status jsonb NOT NULL DEFAULT '{}',
    UNIQUE (name, epoch)
);
