-- How far the learners of a class are, and who of them asks for help.

-- name: progress
-- A row for each learner and session of what the class has, with the session's last run; one for a learner who has none.
SELECT l.user_id, l.name, l.display_name, a.assignment_id, a.plan_id, s.id AS session_id, s.key, s.title, s.position, s.status,
       r.id AS run_id, r.status AS run_status, r.step_index, r.last_activity_at, r.workspace_id, b.steps,
       coalesce(t.at, '{}') AS tried, coalesce(t.tries, '{}') AS tries, h.id AS hand_id
FROM class_learners l
LEFT JOIN LATERAL (
    SELECT a.id AS assignment_id, a.created_at, p.plan_id
    FROM assignments a JOIN assigned_plans p ON p.assignment_id = a.id AND p.owner_id = l.user_id
    WHERE a.class_id = $1 AND a.ended_at IS NULL AND ($2::text IS NULL OR a.id = $2)
) AS a ON true
LEFT JOIN sessions s ON s.plan_id = a.plan_id
LEFT JOIN LATERAL (
    SELECT id, status, step_index, last_activity_at, workspace_id, blueprint_hash FROM session_runs
    WHERE session_id = s.id ORDER BY number DESC LIMIT 1
) AS r ON true
LEFT JOIN LATERAL (
    SELECT steps FROM course_sessions WHERE blueprint_hash = r.blueprint_hash LIMIT 1
) AS b ON true
LEFT JOIN LATERAL (
    SELECT array_agg(step_index) AS at, array_agg(tries) AS tries FROM run_tries WHERE run_id = r.id
) AS t ON true
LEFT JOIN raised_hands h ON h.run_id = r.id AND h.ended_at IS NULL
WHERE l.class_id = $1 AND ($3::text IS NULL OR l.name = $3)
ORDER BY l.name, a.created_at, a.assignment_id, s.position;

-- name: hand
SELECT h.id, h.run_id, r.session_id, s.plan_id, s.title AS session_title, u.name AS owner, h.owner_id, u.display_name,
       h.step_index, h.message, h.raised_at, h.ended_at, codehub_actor_name(h.answered_by) AS answered_by, h.answer, r.workspace_id
FROM raised_hands h
JOIN session_runs r ON r.id = h.run_id
JOIN sessions s ON s.id = r.session_id
JOIN users u ON u.id = h.owner_id
WHERE h.id = $1;

-- name: last_hand
SELECT h.id, h.run_id, r.session_id, s.plan_id, s.title AS session_title, u.name AS owner, h.owner_id, u.display_name,
       h.step_index, h.message, h.raised_at, h.ended_at, codehub_actor_name(h.answered_by) AS answered_by, h.answer, r.workspace_id
FROM raised_hands h
JOIN session_runs r ON r.id = h.run_id
JOIN sessions s ON s.id = r.session_id
JOIN users u ON u.id = h.owner_id
WHERE h.run_id = $1
ORDER BY h.number DESC
LIMIT 1;

-- name: hands_of_class
-- Open ones of its learners, in whatever they learn; who asked first is first. A class that is over has none.
SELECT h.id, h.run_id, r.session_id, s.plan_id, s.title AS session_title, l.name AS owner, h.owner_id, l.display_name,
       h.step_index, h.message, h.raised_at, h.ended_at, NULL AS answered_by, h.answer, r.workspace_id
FROM class_learners l
JOIN classes k ON k.id = l.class_id AND k.archived_at IS NULL
JOIN raised_hands h ON h.owner_id = l.user_id AND h.ended_at IS NULL
JOIN session_runs r ON r.id = h.run_id
JOIN sessions s ON s.id = r.session_id
WHERE l.class_id = $1 AND (h.raised_at, h.id) > ($2, $3)
ORDER BY h.raised_at, h.id
LIMIT $4;

-- name: raise_hand
INSERT INTO raised_hands (id, run_id, owner_id, step_index, message, raised_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_id) WHERE ended_at IS NULL DO NOTHING
RETURNING id;

-- name: end_hand
-- One that is open, once: by its learner, or with an answer.
UPDATE raised_hands SET ended_at = $2, answered_by = codehub_actor_id($3), answer = $4 WHERE id = $1 AND ended_at IS NULL
RETURNING id;

-- name: is_taught
SELECT EXISTS (SELECT FROM teaching WHERE learner_id = $1);

-- name: is_in_class
SELECT EXISTS (SELECT FROM class_learners WHERE class_id = $1 AND user_id = $2);

-- name: classes_of_learner
SELECT l.class_id FROM class_learners l JOIN classes k ON k.id = l.class_id AND k.archived_at IS NULL WHERE l.user_id = $1;

-- name: taught_by
-- The classes that this person teaches, for their stream of events.
SELECT m.class_id FROM class_members m JOIN classes k ON k.id = m.class_id AND k.archived_at IS NULL
WHERE m.user_id = $1 AND m.role = 'teacher';

-- name: hands_of
-- All that a person ever raised.
SELECT id, message, answer FROM raised_hands WHERE owner_id = $1;

-- name: say_otherwise
UPDATE raised_hands SET message = $2, answer = $3 WHERE id = $1;
