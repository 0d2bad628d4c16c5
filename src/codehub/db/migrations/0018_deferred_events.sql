-- Events of what many people do at once. Giving a position makes commits wait for each other, disk included; so these are
-- written here, in the transaction of the change, and moved to `events` a moment later, many at a time
-- (`codehub.events.publisher`).
CREATE TABLE deferred_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    audience text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    data jsonb NOT NULL
);

-- A step or a heartbeat changes no index then, and finds room beside the row: the coordinator's loop reads the running
-- runs by the index that keeps them single.
DROP INDEX session_runs_by_activity;
ALTER TABLE session_runs SET (fillfactor = 70);
ALTER TABLE sessions SET (fillfactor = 70);
DROP INDEX idempotency_keys_by_age;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys USING brin (created_at);
