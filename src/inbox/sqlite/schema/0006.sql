-- 1 for what came with a first answer, which owes nothing; null for everything else, and for what was written before this was
-- kept.
ALTER TABLE notification ADD COLUMN first_read INTEGER;
