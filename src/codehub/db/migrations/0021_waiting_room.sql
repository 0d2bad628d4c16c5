-- The waiting room's durable half: events, and who has an offer or a place. The line itself is in Redis, and can be lost.
-- docs/waiting-room.md has the protocol between the two.
CREATE SEQUENCE waiting_offer_ids;  -- of all events: an offer's id says which of two is the newer one

CREATE TABLE waiting_events (
    id text PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9_-]{1,64}$'),
    owner_id text REFERENCES users,  -- none: the platform's, which is `lab`
    capacity int CHECK (capacity >= 0),  -- of `lab` none is kept: it is a setting
    admission_rate double precision CHECK (admission_rate > 0),  -- people a minute; none: as many as there are places
    next_grant_at timestamptz,  -- from when on the rate allows one more
    opens_at timestamptz,
    "order" text NOT NULL DEFAULT 'fifo' CHECK ("order" IN ('fifo', 'lottery')),
    drawn boolean NOT NULL DEFAULT false,  -- the lottery is over: from here on the line is in order of arrival
    place_lease_seconds int NOT NULL DEFAULT 3600 CHECK (place_lease_seconds > 0),
    paused boolean NOT NULL DEFAULT false,
    draining boolean NOT NULL DEFAULT false,  -- takes no new people; those in line are served
    secret bytea NOT NULL CHECK (length(secret) >= 32),
    epoch bigint NOT NULL DEFAULT 0 CHECK (epoch BETWEEN 0 AND 2097151),  -- a sequence is below 2^53; 0: never opened
    opened_at timestamptz,  -- this epoch
    lost_line boolean NOT NULL DEFAULT false,  -- by a loss of Redis: people may still come back to it
    -- `idle`: no person can be in line, and nothing looks at it; `closing`: none was seen, and a join would say otherwise.
    activity text NOT NULL DEFAULT 'idle' CHECK (activity IN ('idle', 'closing', 'busy')),
    has_live_waiters boolean NOT NULL DEFAULT false,  -- of `lab`: admission reads it instead of asking Redis
    waiters_version bigint NOT NULL DEFAULT 0,  -- grows with every join: what was read before it clears nothing
    waiters_seen_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK ((capacity IS NULL) = (id = 'lab'))
);
CREATE INDEX waiting_events_watched ON waiting_events (id) WHERE activity <> 'idle';
CREATE INDEX waiting_events_by_owner ON waiting_events (owner_id);

INSERT INTO waiting_events (id, secret, created_at, updated_at)
VALUES ('lab', decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'), now(), now());

-- A row stays after its end: it says which sequences are over, so that an old token does not come back as a new one.
CREATE TABLE waiting_places (
    event_id text NOT NULL REFERENCES waiting_events ON DELETE CASCADE,
    pid text NOT NULL,  -- the person, as this event's line knows them
    person text,  -- an account's id, or `=` and what an admin wrote; none: not known yet
    name text,
    state text NOT NULL DEFAULT 'none' CHECK (state IN ('none', 'offered', 'reserved', 'held')),
    seq bigint NOT NULL DEFAULT 0,
    offer_id bigint,
    gone_seq bigint NOT NULL DEFAULT 0,  -- this one and all before it are over
    noted boolean NOT NULL DEFAULT false,  -- Redis has heard of it
    version bigint NOT NULL DEFAULT 0,  -- grows with every change: fences `noted`
    offered_at timestamptz,
    expires_at timestamptz,  -- of the reservation, or of the lease
    workspace_id text REFERENCES workspaces ON DELETE SET NULL,
    run_id text,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (event_id, pid),
    CHECK (state = 'none' OR (offer_id IS NOT NULL AND offered_at IS NOT NULL)),
    CHECK (state NOT IN ('reserved', 'held') OR (expires_at IS NOT NULL AND person IS NOT NULL))
);
CREATE INDEX waiting_places_taken ON waiting_places (event_id, state) WHERE state <> 'none';
CREATE INDEX waiting_places_ending ON waiting_places (expires_at) WHERE state IN ('reserved', 'held');
CREATE INDEX waiting_places_unnoted ON waiting_places (event_id, changed_at) WHERE NOT noted;
CREATE INDEX waiting_places_of_person ON waiting_places (person) WHERE state <> 'none';
CREATE INDEX waiting_places_over ON waiting_places (event_id, changed_at) WHERE state = 'none' AND noted;
CREATE INDEX waiting_places_by_workspace ON waiting_places (workspace_id) WHERE workspace_id IS NOT NULL;
