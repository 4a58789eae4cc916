-- The bytes that were moved in transfer_in_us and transfer_out_us: input_bytes and output_bytes count files, too, that were only linked
-- or kept where they were. Of executions before this they are not known.
ALTER TABLE executions ADD COLUMN moved_in_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN moved_out_bytes BIGINT NOT NULL DEFAULT 0;

-- Bytes a second that transfers of jobs have had, beside the room that the lines of a resource had by their speed. A row has one kind
-- or the other.
ALTER TABLE resource_samples ADD COLUMN transfer_in BIGINT;
ALTER TABLE resource_samples ADD COLUMN transfer_out BIGINT;
ALTER TABLE resource_hours ADD COLUMN transfer_in BIGINT;
ALTER TABLE resource_hours ADD COLUMN transfer_out BIGINT;
