-- What belongs to a person, and what they did, stands on their id; a name is given once, and never to a second person.
CREATE FUNCTION codehub_user_id(wanted text) RETURNS text LANGUAGE sql STABLE
RETURN (SELECT id FROM users WHERE name = wanted);
CREATE FUNCTION codehub_user_name(wanted text) RETURNS text LANGUAGE sql STABLE
RETURN (SELECT name FROM users WHERE id = wanted);

-- Who acted, for the tables of history: a person by their id; the operator and the parts of the platform by their names.
CREATE FUNCTION codehub_actor_id(actor text) RETURNS text LANGUAGE sql STABLE
RETURN coalesce(CASE WHEN actor NOT IN ('ttl', 'wake', 'sessions', 'waiting-room', 'controller', 'codehub')
                     THEN codehub_user_id(actor) END, actor);
CREATE FUNCTION codehub_actor_name(actor text) RETURNS text LANGUAGE sql STABLE
RETURN coalesce(codehub_user_name(actor), actor);

-- The people in the data of a line, by id as it is kept and by name as it is read.
CREATE FUNCTION codehub_data_with_ids(data jsonb) RETURNS jsonb LANGUAGE sql STABLE
RETURN data
    || CASE WHEN data ? 'user' THEN jsonb_build_object('user', codehub_actor_id(data ->> 'user')) ELSE '{}' END
    || CASE WHEN data ? 'owner' THEN jsonb_build_object('owner', codehub_actor_id(data ->> 'owner')) ELSE '{}' END;
CREATE FUNCTION codehub_data_with_names(data jsonb) RETURNS jsonb LANGUAGE sql STABLE
RETURN data
    || CASE WHEN data ? 'user' THEN jsonb_build_object('user', codehub_actor_name(data ->> 'user')) ELSE '{}' END
    || CASE WHEN data ? 'owner' THEN jsonb_build_object('owner', codehub_actor_name(data ->> 'owner')) ELSE '{}' END;

CREATE TABLE former_names (
    name text PRIMARY KEY,
    user_id text NOT NULL REFERENCES users
);

-- Workspaces.
DROP TRIGGER workspaces_announce_new ON workspaces;
DROP TRIGGER workspaces_announce_change ON workspaces;
DROP TRIGGER workspace_shares_announce ON workspace_shares;
DROP TRIGGER users_announce ON users;

ALTER TABLE workspaces ADD COLUMN owner_id text REFERENCES users;
UPDATE workspaces w SET owner_id = u.id FROM users u WHERE u.name = w.owner;
ALTER TABLE workspaces ALTER COLUMN owner_id SET NOT NULL;
ALTER TABLE workspaces DROP COLUMN owner;
CREATE INDEX workspaces_by_owner ON workspaces (owner_id, created_at, id);
CREATE INDEX workspaces_kept ON workspaces (owner_id) WHERE emptied_at IS NULL;

-- A share is made with a name that was typed. The person it lets in is the one who had that name then, if there was one.
ALTER TABLE workspace_shares ADD COLUMN user_id text REFERENCES users;
UPDATE workspace_shares s SET user_id = u.id FROM users u WHERE u.name = s.user_name;
DROP INDEX workspace_shares_by_user;
CREATE INDEX workspace_shares_by_user ON workspace_shares (user_id, workspace_id) WHERE user_id IS NOT NULL;

UPDATE workspace_history
SET actor = codehub_actor_id(actor), data = codehub_data_with_ids(data)
WHERE actor <> codehub_actor_id(actor) OR data ?| ARRAY['user', 'owner'];
UPDATE audit_log
SET actor = codehub_actor_id(actor), subject = codehub_actor_id(subject), data = codehub_data_with_ids(data);
UPDATE access_tokens SET created_by = codehub_actor_id(created_by);

-- Events are for ids, too: a stream that is open goes on when its person is renamed.
CREATE OR REPLACE FUNCTION workspaces_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.owner_id <> NEW.owner_id THEN
        INSERT INTO events (at, audience, kind, subject, data)
        VALUES (NEW.updated_at, 'user:' || OLD.owner_id, 'workspace_left', NEW.id, jsonb_build_object('workspace_id', NEW.id));
    END IF;
    IF TG_OP = 'INSERT' OR OLD.owner_id <> NEW.owner_id THEN
        INSERT INTO events (at, audience, kind, subject, data)
        VALUES (NEW.updated_at, 'user:' || NEW.owner_id, 'workspace_joined', NEW.id, jsonb_build_object('workspace_id', NEW.id));
    END IF;
    INSERT INTO events (at, audience, kind, subject)
    VALUES (NEW.updated_at, 'workspace:' || NEW.id, 'workspace_updated', NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER workspaces_announce_new AFTER INSERT ON workspaces
    FOR EACH ROW EXECUTE FUNCTION workspaces_announce();
CREATE TRIGGER workspaces_announce_change AFTER UPDATE ON workspaces
    FOR EACH ROW
    WHEN ((OLD.name, OLD.owner_id, OLD.phase, OLD.observed_status, OLD.operation, OLD.desired_state, OLD.error_info,
           OLD.progress, OLD.deleted_at, OLD.keep_awake_until, OLD.standby_ttl_seconds, OLD.archive_ttl_seconds,
           OLD.address)
          IS DISTINCT FROM
          (NEW.name, NEW.owner_id, NEW.phase, NEW.observed_status, NEW.operation, NEW.desired_state, NEW.error_info,
           NEW.progress, NEW.deleted_at, NEW.keep_awake_until, NEW.standby_ttl_seconds, NEW.archive_ttl_seconds,
           NEW.address))
    EXECUTE FUNCTION workspaces_announce();

CREATE OR REPLACE FUNCTION workspace_shares_announce() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    share workspace_shares := coalesce(NEW, OLD);
    kind text := CASE TG_OP WHEN 'INSERT' THEN 'workspace_joined' ELSE 'workspace_left' END;
    moment timestamptz := (SELECT updated_at FROM workspaces WHERE id = share.workspace_id);
BEGIN
    IF moment IS NOT NULL AND share.user_id IS NOT NULL THEN
        INSERT INTO events (at, audience, kind, subject, data) VALUES
            (moment, 'user:' || share.user_id, kind, share.workspace_id,
             jsonb_build_object('workspace_id', share.workspace_id));
    END IF;
    IF moment IS NOT NULL THEN
        INSERT INTO events (at, audience, kind, subject, data)
        VALUES (moment, 'workspace:' || share.workspace_id, 'workspace_updated', share.workspace_id, '{}');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER workspace_shares_announce AFTER INSERT OR DELETE ON workspace_shares
    FOR EACH ROW EXECUTE FUNCTION workspace_shares_announce();

-- Who may enter as a guest: those with whom it is shared, while its owner is active.
CREATE FUNCTION codehub_guests(workspace text, owner text) RETURNS text[] LANGUAGE sql STABLE
RETURN ARRAY(
    SELECT u.name FROM workspace_shares s JOIN users u ON u.id = s.user_id
    WHERE s.workspace_id = workspace
      AND EXISTS (SELECT FROM users o WHERE o.id = owner AND o.deactivated_at IS NULL)
);

-- A user who is deactivated has no guests until they are active again. The proxy's routes name owner and guests: they are
-- read again then, and when somebody is renamed.
CREATE OR REPLACE FUNCTION users_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.deactivated_at IS NULL) <> (NEW.deactivated_at IS NULL) THEN
        INSERT INTO events (at, audience, kind, subject, data)
        SELECT coalesce(NEW.deactivated_at, now()), 'user:' || s.user_id,
               CASE WHEN NEW.deactivated_at IS NULL THEN 'workspace_joined' ELSE 'workspace_left' END,
               w.id, jsonb_build_object('workspace_id', w.id)
        FROM workspaces w JOIN workspace_shares s ON s.workspace_id = w.id
        WHERE w.owner_id = NEW.id AND w.emptied_at IS NULL AND s.user_id IS NOT NULL;
    END IF;
    INSERT INTO events (at, audience, kind, subject, data)
    SELECT now(), 'workspace:' || w.id, 'workspace_updated', w.id, '{}'
    FROM workspaces w
    WHERE w.emptied_at IS NULL
      AND (w.owner_id = NEW.id
           OR EXISTS (SELECT FROM workspace_shares s WHERE s.workspace_id = w.id AND s.user_id = NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER users_announce AFTER UPDATE OF deactivated_at, name ON users
    FOR EACH ROW WHEN (OLD.name <> NEW.name OR (OLD.deactivated_at IS NULL) <> (NEW.deactivated_at IS NULL))
    EXECUTE FUNCTION users_announce();
