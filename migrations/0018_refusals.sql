-- Requests that were refused are found again by their ids.
CREATE INDEX notes_refused ON notes (subject) WHERE kind = 'refused' AND negotiation IS NULL;
