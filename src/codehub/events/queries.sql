-- name: write
INSERT INTO events (at, audience, kind, subject, data)
SELECT $1, audience, kind, subject, data
FROM jsonb_to_recordset($2) AS e (audience text, kind text, subject text, data jsonb);

-- name: newest
SELECT events_newest();

-- name: floor
SELECT position FROM event_floor;

-- name: after
-- With the floor in the same snapshot: whether something before these is gone already. One row at least.
SELECT f.position AS floor, e.*
FROM event_floor f LEFT JOIN LATERAL (
    SELECT position, audience, kind, subject, data::text AS data
    FROM events WHERE position > $1 ORDER BY position LIMIT $2
) AS e ON true
ORDER BY e.position;

-- name: missed
-- Those of some audiences, each by its index and no more than a bound.
SELECT e.*
FROM unnest($1::text[]) AS a (audience) CROSS JOIN LATERAL (
    SELECT position, audience, kind, subject, data::text AS data
    FROM events WHERE events.audience = a.audience AND position > $2 AND position <= $3 ORDER BY position LIMIT $4
) AS e
ORDER BY e.position
LIMIT $4;

-- name: missed_by_class
-- As above, for a listener to whole classes of audiences ($5, as LIKE patterns): reads no more than a bound of whatever there was.
SELECT e.*, e.audience = ANY ($1::text[]) OR e.audience LIKE ANY ($5::text[]) AS theirs
FROM (
    SELECT position, audience, kind, subject, data::text AS data
    FROM events WHERE position > $2 AND position <= $3 ORDER BY position LIMIT $4
) AS e
ORDER BY e.position;

-- name: prune
-- The oldest, a bounded number, as far as their time is over; the floor follows.
WITH gone AS (
    DELETE FROM events
    WHERE id IN (SELECT id FROM events WHERE position IS NOT NULL ORDER BY position LIMIT $2) AND at < $1
    RETURNING position
), moved AS (
    UPDATE event_floor SET position = greatest(position, (SELECT max(position) FROM gone))
    WHERE EXISTS (SELECT FROM gone)
)
SELECT count(*) FROM gone;

-- name: one_publisher
-- For the transaction: what one took, and has not written yet, no other may overtake.
SELECT pg_advisory_xact_lock(7235419);

-- name: publish
-- In the order in which they were written, which is that of the changes of one subject.
WITH taken AS (
    DELETE FROM deferred_events
    WHERE id IN (SELECT id FROM deferred_events ORDER BY id LIMIT $1)
    RETURNING id, at, audience, kind, subject, data
), told AS (
    INSERT INTO events (at, audience, kind, subject, data)
    SELECT at, audience, kind, subject, data FROM (
        SELECT id, at, audience, kind, subject, data FROM taken
        UNION ALL
        -- To each class of a learner once, whatever of theirs changed at the same time.
        SELECT max(t.id), max(t.at), 'class:' || k.class_id, 'progress_updated', k.user_id,
               jsonb_build_object('class_id', k.class_id, 'learner', k.name)
        FROM taken t CROSS JOIN LATERAL events_classes_of(t.audience, t.kind) AS k
        GROUP BY k.class_id, k.user_id, k.name
    ) AS all_of_them
    ORDER BY id
)
SELECT count(*) FROM taken;
