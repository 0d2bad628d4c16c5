-- What lies in the trash is its owner's: guests leave a workspace that is deleted and join it again when it is
-- undeleted, each before the workspace's own event. In between they are told nothing of it.
CREATE FUNCTION codehub_admits_guests(owner text, deleted timestamptz) RETURNS boolean LANGUAGE sql STABLE
RETURN deleted IS NULL AND EXISTS (SELECT FROM users WHERE id = owner AND deactivated_at IS NULL);

CREATE FUNCTION workspaces_announce_to_guests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (at, audience, kind, subject, data)
    SELECT NEW.updated_at, 'user:' || s.user_id,
           CASE WHEN NEW.deleted_at IS NULL THEN 'workspace_joined' ELSE 'workspace_left' END,
           NEW.id, jsonb_build_object('workspace_id', NEW.id)
    FROM workspace_shares s
    WHERE s.workspace_id = NEW.id AND s.user_id IS NOT NULL AND codehub_admits_guests(NEW.owner_id, NULL);
    RETURN NULL;
END $$;
-- Triggers of one event run in the order of their names: this one before `workspaces_announce_change`.
CREATE TRIGGER workspaces_admit_guests AFTER UPDATE OF deleted_at ON workspaces
    FOR EACH ROW WHEN ((OLD.deleted_at IS NULL) <> (NEW.deleted_at IS NULL))
    EXECUTE FUNCTION workspaces_announce_to_guests();

CREATE OR REPLACE FUNCTION workspace_shares_announce() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    share workspace_shares := coalesce(NEW, OLD);
    w workspaces;
BEGIN
    SELECT * INTO w FROM workspaces WHERE id = share.workspace_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF share.user_id IS NOT NULL AND codehub_admits_guests(w.owner_id, w.deleted_at) THEN
        INSERT INTO events (at, audience, kind, subject, data)
        VALUES (w.updated_at, 'user:' || share.user_id,
                CASE TG_OP WHEN 'INSERT' THEN 'workspace_joined' ELSE 'workspace_left' END,
                w.id, jsonb_build_object('workspace_id', w.id));
    END IF;
    INSERT INTO events (at, audience, kind, subject) VALUES (w.updated_at, 'workspace:' || w.id, 'workspace_updated', w.id);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION users_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.deactivated_at IS NULL) <> (NEW.deactivated_at IS NULL) THEN
        INSERT INTO events (at, audience, kind, subject, data)
        SELECT coalesce(NEW.deactivated_at, now()), 'user:' || s.user_id,
               CASE WHEN NEW.deactivated_at IS NULL THEN 'workspace_joined' ELSE 'workspace_left' END,
               w.id, jsonb_build_object('workspace_id', w.id)
        FROM workspaces w JOIN workspace_shares s ON s.workspace_id = w.id
        WHERE w.owner_id = NEW.id AND w.deleted_at IS NULL AND s.user_id IS NOT NULL;
    END IF;
    INSERT INTO events (at, audience, kind, subject)
    SELECT now(), 'workspace:' || w.id, 'workspace_updated', w.id
    FROM workspaces w
    WHERE w.emptied_at IS NULL
      AND (w.owner_id = NEW.id
           OR EXISTS (SELECT FROM workspace_shares s WHERE s.workspace_id = w.id AND s.user_id = NEW.id));
    RETURN NULL;
END $$;
