-- Classes: who teaches whom.
CREATE TABLE classes (
    id text PRIMARY KEY,
    title text NOT NULL,
    created_by text NOT NULL,  -- a person's id, or who it was otherwise, as in the audit log
    created_at timestamptz NOT NULL,
    archived_at timestamptz  -- over: it can be read, and gives its teachers no rights any more
);

-- Which teacher made an account for a class. How many one makes is bounded.
ALTER TABLE users ADD COLUMN made_by text REFERENCES users;
CREATE INDEX users_by_maker ON users (made_by) WHERE made_by IS NOT NULL;

CREATE TABLE class_members (
    class_id text NOT NULL REFERENCES classes ON DELETE CASCADE,
    user_id text NOT NULL REFERENCES users,
    role text NOT NULL CHECK (role IN ('learner', 'teacher')),
    -- How they came. Accounts that were made here, or that joined by an invitation, are looked after by the teachers.
    came text NOT NULL CHECK (came IN ('made', 'joined', 'added')),
    school_id text,  -- the school's own number, from a list
    joined_at timestamptz NOT NULL,
    PRIMARY KEY (class_id, user_id)
);
CREATE INDEX class_members_by_user ON class_members (user_id, role);
CREATE UNIQUE INDEX class_members_by_school_id ON class_members (class_id, school_id) WHERE school_id IS NOT NULL;

-- Which classes a person is in by their groups at a provider: leaving the group leaves the class.
CREATE TABLE identity_classes (
    identity_id text NOT NULL REFERENCES identities ON DELETE CASCADE,
    class_id text NOT NULL REFERENCES classes ON DELETE CASCADE,
    PRIMARY KEY (identity_id, class_id)
);
CREATE INDEX identity_classes_by_class ON identity_classes (class_id);

CREATE TABLE invitations (
    id text PRIMARY KEY,
    class_id text NOT NULL REFERENCES classes ON DELETE CASCADE,
    code text NOT NULL UNIQUE,  -- six letters, for a wall: its teachers read it again
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    max_uses int CHECK (max_uses > 0),  -- null: any number
    uses int NOT NULL DEFAULT 0 CHECK (uses >= 0),
    revoked_at timestamptz,
    CHECK (max_uses IS NULL OR uses <= max_uses)
);
CREATE INDEX invitations_by_class ON invitations (class_id, created_at, id);

-- Who is taught by whom, in classes that are not over. Only a learner's account is: one that became a teacher's or an
-- admin's is nobody's to look into. A teacher who is none any more teaches nobody.
CREATE VIEW teaching AS
SELECT t.user_id AS teacher_id, l.user_id AS learner_id, l.class_id, l.came
FROM class_members t
JOIN classes k ON k.id = t.class_id AND k.archived_at IS NULL
JOIN users tu ON tu.id = t.user_id AND tu.role IN ('teacher', 'admin') AND tu.deactivated_at IS NULL
JOIN class_members l ON l.class_id = t.class_id AND l.role = 'learner'
JOIN users lu ON lu.id = l.user_id AND lu.role = 'learner' AND lu.removed_at IS NULL
WHERE t.role = 'teacher';

-- For the routes of the proxy: who may come as a teacher of the owner.
CREATE FUNCTION codehub_teachers(owner text) RETURNS text[] LANGUAGE sql STABLE
RETURN ARRAY(SELECT DISTINCT u.name FROM teaching JOIN users u ON u.id = teaching.teacher_id WHERE learner_id = owner);

-- The proxy's routes name the owners' teachers, too: they are read again when a class changes, once for each statement.
CREATE FUNCTION classes_announce(changed text[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO events (at, audience, kind, subject)
    SELECT DISTINCT now(), 'workspace:' || w.id, 'workspace_updated', w.id
    FROM class_members m JOIN workspaces w ON w.owner_id = m.user_id
    WHERE m.class_id = ANY (changed) AND m.role = 'learner' AND w.emptied_at IS NULL;
$$;
CREATE FUNCTION class_members_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM classes_announce(ARRAY(SELECT DISTINCT class_id FROM touched WHERE role = 'teacher'));
    INSERT INTO events (at, audience, kind, subject)
    SELECT DISTINCT now(), 'workspace:' || w.id, 'workspace_updated', w.id
    FROM touched m JOIN workspaces w ON w.owner_id = m.user_id
    WHERE m.role = 'learner' AND w.emptied_at IS NULL;
    PERFORM pg_notify('codehub_auth', '');
    RETURN NULL;
END $$;
-- A member's role is never updated: who becomes a teacher leaves as a learner, and comes again.
CREATE TRIGGER class_members_announce_new AFTER INSERT ON class_members
    REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION class_members_announce();
CREATE TRIGGER class_members_announce_gone AFTER DELETE ON class_members
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION class_members_announce();

CREATE FUNCTION class_archived_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM classes_announce(ARRAY[NEW.id]);
    PERFORM pg_notify('codehub_auth', '');
    RETURN NULL;
END $$;
CREATE TRIGGER classes_archived AFTER UPDATE OF archived_at ON classes
    FOR EACH ROW WHEN (OLD.archived_at IS DISTINCT FROM NEW.archived_at) EXECUTE FUNCTION class_archived_announce();
-- A role that changes changes who teaches whom.
CREATE FUNCTION users_role_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM classes_announce(ARRAY(SELECT class_id FROM class_members WHERE user_id = NEW.id));
    PERFORM pg_notify('codehub_auth', '');
    RETURN NULL;
END $$;
CREATE TRIGGER users_role_announce AFTER UPDATE OF role, deactivated_at ON users
    FOR EACH ROW WHEN (OLD.role <> NEW.role OR (OLD.deactivated_at IS NULL) <> (NEW.deactivated_at IS NULL))
    EXECUTE FUNCTION users_role_announce();
