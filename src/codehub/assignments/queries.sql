-- name: add
INSERT INTO assignments (id, class_id, course_id, starts_on, created_by, created_at)
VALUES ($1, $2, $3, $4, codehub_actor_id($5), $6);

-- name: find
SELECT a.id, a.class_id, a.course_id, v.title, c.language, a.starts_on, codehub_actor_name(a.created_by) AS created_by,
       a.created_at, a.ended_at
FROM assignments a
JOIN courses c ON c.id = a.course_id
JOIN course_versions v ON v.course_id = c.id AND v.version = c.version
WHERE a.id = $1 AND a.class_id = $2;

-- name: page
-- Those that go on.
SELECT a.id, a.class_id, a.course_id, v.title, c.language, a.starts_on, codehub_actor_name(a.created_by) AS created_by,
       a.created_at, a.ended_at
FROM assignments a
JOIN courses c ON c.id = a.course_id
JOIN course_versions v ON v.course_id = c.id AND v.version = c.version
WHERE a.class_id = $1 AND a.ended_at IS NULL AND (a.created_at, a.id) > ($2, $3)
ORDER BY a.created_at, a.id
LIMIT $4;

-- name: going_on
SELECT id FROM assignments WHERE class_id = $1 AND course_id = $2 AND ended_at IS NULL;

-- name: count
SELECT count(*) FROM assignments WHERE class_id = $1 AND ended_at IS NULL;

-- name: end
UPDATE assignments SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL;

-- name: class_learners
SELECT user_id FROM class_learners WHERE class_id = $1 ORDER BY user_id;

-- name: without_a_plan
-- Of these learners, those who do not follow this assignment yet: one who comes back to the class goes on where they were.
SELECT u.id FROM unnest($2::text[]) AS u (id)
WHERE NOT EXISTS (SELECT FROM assigned_plans p WHERE p.assignment_id = $1 AND p.owner_id = u.id)
ORDER BY u.id;

-- name: follow
INSERT INTO assigned_plans (assignment_id, owner_id, plan_id)
SELECT $1, owner_id, plan_id FROM unnest($2::text[], $3::text[]) AS n (owner_id, plan_id);

-- name: given_to
-- The plans that one has from classes that go on, and the classes' titles.
SELECT p.plan_id, k.title
FROM class_learners l
JOIN classes k ON k.id = l.class_id AND k.archived_at IS NULL
JOIN assignments a ON a.class_id = k.id AND a.ended_at IS NULL
JOIN assigned_plans p ON p.assignment_id = a.id AND p.owner_id = l.user_id
WHERE l.user_id = $1
ORDER BY k.title, p.plan_id
LIMIT $2;

-- name: classes_of_plans
-- By which classes these plans are followed, for their learner's pages.
SELECT DISTINCT p.plan_id, k.title
FROM assigned_plans p JOIN assignments a ON a.id = p.assignment_id JOIN classes k ON k.id = a.class_id
WHERE p.plan_id = ANY ($1::text[])
ORDER BY p.plan_id, k.title;

-- name: taught
-- The classes that one teaches and that go on, with the day from which they have this course.
SELECT k.id, k.title, a.starts_on
FROM class_members m
JOIN classes k ON k.id = m.class_id AND k.archived_at IS NULL
LEFT JOIN assignments a ON a.class_id = k.id AND a.course_id = $2 AND a.ended_at IS NULL
WHERE m.user_id = $1 AND m.role = 'teacher'
ORDER BY k.created_at, k.id
LIMIT $3;
