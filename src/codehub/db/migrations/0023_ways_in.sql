-- Who people are to others, and their ways in beside a link: passwords, passkeys, logins of a school or company.
ALTER TABLE users
    ADD COLUMN display_name text NOT NULL DEFAULT '',  -- empty: the name is shown
    ADD COLUMN language text,  -- null: what the browser prefers
    ADD COLUMN time_zone text,  -- null: what the browser says
    ADD COLUMN removed_at timestamptz;  -- what they did stays, without a name

CREATE TABLE passwords (
    user_id text PRIMARY KEY REFERENCES users,
    hash text NOT NULL,  -- argon2id, with its parameters and salt
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL  -- a person's id, or who it was otherwise, as in the audit log
);

CREATE TABLE passkeys (
    id text PRIMARY KEY,
    user_id text NOT NULL REFERENCES users,
    credential_id bytea NOT NULL UNIQUE,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    label text NOT NULL,  -- what its person calls it
    transports text[] NOT NULL DEFAULT '{}',  -- hints for the browser
    belongs_to text NOT NULL,  -- the platform's name when it was made: at another one no browser offers it
    created_at timestamptz NOT NULL,
    last_used_at timestamptz,
    blocked_at timestamptz  -- its counter went back, so that it may have been copied: no way in any more
);
CREATE INDEX passkeys_by_user ON passkeys (user_id, created_at, id);

CREATE TABLE identities (
    id text PRIMARY KEY,
    user_id text NOT NULL REFERENCES users,
    provider text NOT NULL,  -- as the settings call it
    issuer text NOT NULL,
    subject text NOT NULL,
    label text NOT NULL DEFAULT '',  -- an address or a name, for its person to recognise
    email text,  -- in lower case; only one that the provider has verified
    role_given text CHECK (role_given IN ('admin', 'teacher', 'learner')),  -- by their groups there, at the last login
    created_at timestamptz NOT NULL,
    last_used_at timestamptz,
    UNIQUE (issuer, subject)
);
CREATE INDEX identities_by_user ON identities (user_id, created_at, id);
CREATE INDEX identities_by_email ON identities (email) WHERE email IS NOT NULL;

-- Which browser's session began at a provider, so that its logout can be one there, too.
CREATE TABLE provider_logins (
    session_id text PRIMARY KEY REFERENCES browser_sessions ON DELETE CASCADE,
    identity_id text NOT NULL REFERENCES identities ON DELETE CASCADE,
    sealed_id_token bytea NOT NULL  -- says to the provider whose login ends; opens nothing, but says who they are
);
CREATE INDEX provider_logins_by_identity ON provider_logins (identity_id);

-- Of a person who was removed, only a hash of the name is kept: it is not given again, and says nobody's name.
ALTER TABLE former_names ADD COLUMN is_hashed boolean NOT NULL DEFAULT false;
CREATE FUNCTION codehub_name_hash(name text) RETURNS text LANGUAGE sql IMMUTABLE
RETURN 'sha256:' || encode(sha256(convert_to(name, 'UTF8')), 'hex');
