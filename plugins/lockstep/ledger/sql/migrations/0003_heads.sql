-- How a growing file begins: by that it is known again under another name.

ALTER TABLE lockstep.claim ADD COLUMN head text;
CREATE INDEX claim_head ON lockstep.claim (pipeline, source, head) WHERE head IS NOT NULL;
