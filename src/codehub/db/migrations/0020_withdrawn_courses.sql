-- A course that is withdrawn is not taken up any more; plans of it go on, and it can be offered again.
ALTER TABLE courses ADD COLUMN withdrawn_at timestamptz;
