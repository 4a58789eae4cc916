-- Templates as they were when offers were made from them, each text once. The id is the beginning of the text's SHA-256.
CREATE TABLE template_versions (
    id       UUID NOT NULL PRIMARY KEY,
    document TEXT NOT NULL
);

-- An offer that came as a flat request is kept as that in `document`, with the template that says what it leaves out; its document
-- is written when it is asked for. Null where `document` is a document.
ALTER TABLE agreement_documents ADD COLUMN template UUID REFERENCES template_versions (id);
ALTER TABLE archived_documents ADD COLUMN template UUID REFERENCES template_versions (id);

-- It was the same as negotiations_by_agreement.
DROP INDEX negotiations_about;
