-- What a course's new version does to the plans that were made from it. A session that has a run keeps everything but
-- its place in the list; what has ended stays as it is.

-- name: keep_blueprints
INSERT INTO blueprints (hash, body, view_hash, created_at)
SELECT hash, body, view_hash, $4 FROM unnest($1::text[], $2::text[], $3::text[]) AS b (hash, body, view_hash)
ORDER BY hash
ON CONFLICT DO NOTHING;

-- name: bodies
SELECT hash, body FROM blueprints WHERE hash = ANY ($1::text[]);

-- name: change
UPDATE sessions s
SET title = n.title, scheduled_for_date = p.starts_on + n.day - 1, blueprint_hash = n.blueprint_hash, changed_at = $2
FROM plans p, unnest($3::text[], $4::text[], $5::int[], $6::text[]) AS n (key, title, day, blueprint_hash)
WHERE p.course_id = $1 AND s.plan_id = p.id AND s.key = n.key AND s.status = 'SCHEDULED'
  AND NOT EXISTS (SELECT FROM session_runs r WHERE r.session_id = s.id)
RETURNING s.plan_id;

-- name: cancel
UPDATE sessions s SET status = 'CANCELED', changed_at = $2
FROM plans p
WHERE p.course_id = $1 AND s.plan_id = p.id AND s.key = ANY ($3::text[]) AND s.status = 'SCHEDULED'
  AND NOT EXISTS (SELECT FROM session_runs r WHERE r.session_id = s.id)
RETURNING s.plan_id;

-- name: plans_of
SELECT p.id, p.owner_id, (SELECT max(position) FROM sessions s WHERE s.plan_id = p.id) AS last
FROM plans p WHERE p.course_id = $1;

-- name: add
-- A key that a plan has already, from an earlier version, is not added again: what was canceled stays so.
INSERT INTO sessions (id, plan_id, position, key, title, scheduled_for_date, blueprint_hash, changed_at)
SELECT n.id, n.plan_id, n.position, n.key, n.title, p.starts_on + n.day - 1, n.blueprint_hash, $1
FROM unnest($2::text[], $3::text[], $4::int[], $5::text[], $6::text[], $7::int[], $8::text[])
    AS n (id, plan_id, position, key, title, day, blueprint_hash)
JOIN plans p ON p.id = n.plan_id
ON CONFLICT (plan_id, key) DO NOTHING
RETURNING plan_id;

-- name: order
-- As the course has them; what it has no more comes last, in its old order.
UPDATE sessions s SET position = n.position
FROM (
    SELECT s.id, row_number() OVER (PARTITION BY s.plan_id ORDER BY k.position NULLS LAST, s.position) - 1 AS position
    FROM plans p
    JOIN sessions s ON s.plan_id = p.id
    LEFT JOIN unnest($2::text[]) WITH ORDINALITY AS k (key, position) ON k.key = s.key
    WHERE p.course_id = $1
) n
WHERE s.id = n.id AND s.position <> n.position;

-- name: note_version
UPDATE plans SET course_version = $2, title = $3 WHERE course_id = $1;

-- name: unfinished
-- One plan of this person and course that has something left to do.
SELECT p.id FROM plans p JOIN users u ON u.id = p.owner_id
WHERE p.course_id = $1 AND u.name = $2
  AND EXISTS (SELECT FROM sessions s WHERE s.plan_id = p.id AND s.status IN ('SCHEDULED', 'IN_PROGRESS'))
ORDER BY p.created_at DESC, p.id
LIMIT 1;

-- name: one_at_a_time
SELECT pg_advisory_xact_lock(hashtextextended('take-up:' || $1 || ':' || $2, 0));

-- name: one_at_a_time_by_id
-- The lock of `one_at_a_time`, which has the person's name.
SELECT pg_advisory_xact_lock(hashtextextended('take-up:' || name || ':' || $2, 0)) FROM users WHERE id = $1;

-- name: unfinished_of
SELECT DISTINCT ON (p.owner_id) p.owner_id, p.id FROM plans p
WHERE p.course_id = $1 AND p.owner_id = ANY ($2::text[])
  AND EXISTS (SELECT FROM sessions s WHERE s.plan_id = p.id AND s.status IN ('SCHEDULED', 'IN_PROGRESS'))
ORDER BY p.owner_id, p.created_at DESC, p.id;

-- name: add_plans
INSERT INTO plans (id, owner_id, title, created_by, created_at, course_id, course_version, starts_on, is_assigned)
SELECT n.id, n.owner_id, $3, codehub_actor_id($4), $5, $6, $7, $8, true FROM unnest($1::text[], $2::text[]) AS n (id, owner_id);

-- name: add_planned
-- The same sessions for each of several plans.
INSERT INTO sessions (id, plan_id, position, key, title, scheduled_for_date, blueprint_hash, changed_at)
SELECT n.id, n.plan_id, n.position, l.key, l.title, $2::date + l.day - 1, l.blueprint_hash, $1
FROM unnest($3::text[], $4::text[], $5::int[]) AS n (id, plan_id, position)
JOIN unnest($6::text[], $7::text[], $8::int[], $9::text[]) WITH ORDINALITY AS l (key, title, day, blueprint_hash, number)
    ON l.number = n.position + 1;

-- name: used
SELECT course_id, count(*) AS plans FROM plans WHERE course_id = ANY ($1::text[]) GROUP BY course_id;

-- name: plans_in_all
SELECT count(*) FROM plans WHERE course_id = $1;

-- name: reach
-- In how many plans each session has not been begun, and would be changed by a new version; and in how many it stays.
SELECT s.key, count(*) AS plans,
       count(*) FILTER (
           WHERE s.status = 'SCHEDULED' AND NOT EXISTS (SELECT FROM session_runs r WHERE r.session_id = s.id)
       ) AS reached
FROM plans p
JOIN sessions s ON s.plan_id = p.id
WHERE p.course_id = $1 AND s.key IS NOT NULL
GROUP BY s.key;
