-- Courses that were sent by a page and are not saved yet: shown first, then saved as they were shown, or forgotten.

CREATE TABLE course_drafts (
    id text PRIMARY KEY,
    owner_id text NOT NULL REFERENCES users ON DELETE CASCADE,
    course_id text REFERENCES courses ON DELETE CASCADE,  -- which it is to change; null: the one of its key, or a new one
    body text,  -- the course as JSON; null: it was saved
    digest text NOT NULL,
    warnings jsonb NOT NULL,
    saved_as text REFERENCES courses ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CHECK ((body IS NULL) = (saved_as IS NOT NULL))
);
CREATE INDEX course_drafts_by_owner ON course_drafts (owner_id, created_at);
CREATE INDEX course_drafts_by_expiry ON course_drafts (expires_at);
