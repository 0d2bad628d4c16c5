-- Courses: what a teacher writes once. Every version stays, with its sessions in their order.

CREATE TABLE courses (
    id text PRIMARY KEY,
    owner_id text REFERENCES users ON DELETE RESTRICT,  -- null: the platform's
    key text,  -- names it, with the language, among its owner's
    language text NOT NULL,
    version int NOT NULL CHECK (version >= 1),  -- the newest
    is_shipped boolean NOT NULL DEFAULT false,  -- it came with the product, and changes with it
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    CHECK (NOT is_shipped OR (owner_id IS NULL AND key IS NOT NULL))
);
CREATE UNIQUE INDEX courses_by_key ON courses (coalesce(owner_id, ''), is_shipped, key, language) WHERE key IS NOT NULL;
CREATE INDEX courses_by_age ON courses (created_at, id);

CREATE TABLE course_versions (
    course_id text NOT NULL REFERENCES courses ON DELETE RESTRICT,
    version int NOT NULL CHECK (version >= 1),
    title text NOT NULL,
    description text,
    author text,
    digest text NOT NULL,  -- of all that its author wrote: the same again is no new version
    created_by text NOT NULL,  -- a person's id, or who it was otherwise, as in the audit log
    created_at timestamptz NOT NULL,
    PRIMARY KEY (course_id, version)
);

CREATE TABLE course_sessions (
    course_id text NOT NULL,
    version int NOT NULL,
    position int NOT NULL CHECK (position >= 0),
    key text NOT NULL,
    title text NOT NULL,
    day int NOT NULL CHECK (day >= 1),
    steps text[] NOT NULL,
    blueprint_hash text NOT NULL REFERENCES blueprints ON DELETE RESTRICT,
    PRIMARY KEY (course_id, version, position),
    UNIQUE (course_id, version, key),
    FOREIGN KEY (course_id, version) REFERENCES course_versions ON DELETE RESTRICT
);

ALTER TABLE plans ADD FOREIGN KEY (course_id) REFERENCES courses ON DELETE RESTRICT;

-- A new version may put sessions in another order: they swap their positions within one statement.
ALTER TABLE sessions DROP CONSTRAINT sessions_plan_id_position_key;
ALTER TABLE sessions ADD CONSTRAINT sessions_plan_id_position_key UNIQUE (plan_id, position) DEFERRABLE;
