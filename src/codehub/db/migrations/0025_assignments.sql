-- What a class is given to learn, how far its learners are, and who asks for help.

-- The learners of a class who are learners by their account, too, as in `teaching`: the others are nobody's to look into.
CREATE VIEW class_learners AS
SELECT m.class_id, m.user_id, u.name, u.display_name, m.joined_at
FROM class_members m JOIN users u ON u.id = m.user_id
WHERE m.role = 'learner' AND u.role = 'learner' AND u.removed_at IS NULL;

CREATE TABLE assignments (
    id text PRIMARY KEY,
    class_id text NOT NULL REFERENCES classes ON DELETE CASCADE,
    course_id text NOT NULL REFERENCES courses ON DELETE RESTRICT,
    starts_on date NOT NULL,
    created_by text NOT NULL,  -- a person's id, or who it was otherwise, as in the audit log
    created_at timestamptz NOT NULL,
    ended_at timestamptz  -- since when those who join do not get it; the plans stay
);
CREATE UNIQUE INDEX assignments_going_on ON assignments (class_id, course_id) WHERE ended_at IS NULL;
CREATE INDEX assignments_by_class ON assignments (class_id, created_at, id);
CREATE INDEX assignments_by_course ON assignments (course_id) WHERE ended_at IS NULL;

-- By which plan a learner follows an assignment: one that was made for it, or that they had begun of the same course.
CREATE TABLE assigned_plans (
    assignment_id text NOT NULL REFERENCES assignments ON DELETE CASCADE,
    owner_id text NOT NULL REFERENCES users ON DELETE RESTRICT,
    plan_id text NOT NULL REFERENCES plans ON DELETE RESTRICT,
    PRIMARY KEY (assignment_id, owner_id)
);
CREATE INDEX assigned_plans_by_plan ON assigned_plans (plan_id);
-- What a teacher assigns does not count as a plan that they made for themselves, also when the class is deleted.
ALTER TABLE plans ADD COLUMN is_assigned boolean NOT NULL DEFAULT false;
-- The steps of a run, by the blueprint it began with.
CREATE INDEX course_sessions_by_blueprint ON course_sessions (blueprint_hash);

-- A course's new version changes what its classes see.
CREATE FUNCTION assignments_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (at, audience, kind, subject, data)
    SELECT NEW.changed_at, 'class:' || class_id, 'class_updated', class_id, jsonb_build_object('class_id', class_id)
    FROM assignments WHERE course_id = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER courses_announce_to_classes AFTER UPDATE OF version ON courses
    FOR EACH ROW WHEN (OLD.version <> NEW.version) EXECUTE FUNCTION assignments_announce();

-- A learner asks for help in a run. What was asked and answered is kept.
CREATE TABLE raised_hands (
    id text PRIMARY KEY,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,  -- in which order they went up, whatever the clock said
    run_id text NOT NULL REFERENCES session_runs ON DELETE RESTRICT,
    owner_id text NOT NULL REFERENCES users ON DELETE RESTRICT,
    step_index int NOT NULL,  -- at which the run was
    message text NOT NULL,  -- may be empty
    raised_at timestamptz NOT NULL,
    ended_at timestamptz,
    answered_by text,  -- a person's id, or who it was otherwise; none: it was lowered by the learner
    answer text,  -- may be empty: the teacher came in person
    CHECK (ended_at IS NOT NULL OR (answered_by IS NULL AND answer IS NULL)),
    CHECK ((answered_by IS NULL) = (answer IS NULL))
);
CREATE UNIQUE INDEX raised_hands_open_per_run ON raised_hands (run_id) WHERE ended_at IS NULL;
CREATE INDEX raised_hands_open_by_owner ON raised_hands (owner_id, raised_at) WHERE ended_at IS NULL;
CREATE INDEX raised_hands_by_run ON raised_hands (run_id, number);
-- Who has given up needs no help with it any more; who has finished may still wait for the answer.
CREATE FUNCTION raised_hands_end_with_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE raised_hands SET ended_at = NEW.ended_at WHERE run_id = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER session_runs_end_hands AFTER UPDATE OF status ON session_runs
    FOR EACH ROW WHEN (NEW.status = 'ABANDONED') EXECUTE FUNCTION raised_hands_end_with_run();

-- To which classes an event of a learner is told, too: `events.publisher` asks when it publishes what many do at once.
CREATE FUNCTION events_classes_of(event_audience text, event_kind text)
RETURNS TABLE (class_id text, user_id text, name text) LANGUAGE sql STABLE AS $$
    SELECT l.class_id, l.user_id, l.name
    FROM class_learners l JOIN classes k ON k.id = l.class_id AND k.archived_at IS NULL
    WHERE l.user_id = substr(event_audience, 6)
      AND event_audience LIKE 'user:%' AND event_kind IN ('run_updated', 'session_updated', 'run_tried')
$$;

-- A teacher hears of a class while they teach it and it is not over: these events move their open streams. Who is in it as a
-- teacher and has become a learner teaches nobody.
CREATE FUNCTION class_teachers_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (at, audience, kind, subject, data)
    SELECT now(), 'user:' || user_id, CASE TG_OP WHEN 'INSERT' THEN 'class_joined' ELSE 'class_left' END, class_id,
           jsonb_build_object('class_id', class_id)
    FROM touched WHERE role = 'teacher';
    RETURN NULL;
END $$;
CREATE TRIGGER class_teachers_come AFTER INSERT ON class_members
    REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION class_teachers_move();
CREATE TRIGGER class_teachers_go AFTER DELETE ON class_members
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION class_teachers_move();
CREATE FUNCTION class_over_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (at, audience, kind, subject, data)
    SELECT now(), 'user:' || user_id, CASE WHEN NEW.archived_at IS NULL THEN 'class_joined' ELSE 'class_left' END, NEW.id,
           jsonb_build_object('class_id', NEW.id)
    FROM class_members m JOIN users u ON u.id = m.user_id AND u.role IN ('teacher', 'admin') AND u.deactivated_at IS NULL
    WHERE m.class_id = NEW.id AND m.role = 'teacher';
    RETURN NULL;
END $$;
CREATE TRIGGER classes_over_move AFTER UPDATE OF archived_at ON classes
    FOR EACH ROW WHEN ((OLD.archived_at IS NULL) <> (NEW.archived_at IS NULL)) EXECUTE FUNCTION class_over_move();
