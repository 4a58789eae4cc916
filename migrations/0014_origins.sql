-- Under which agreement's id the work of an agreement is known outside, where it has taken that over while it ran: that of
-- the first in their row. Null for its own.
ALTER TABLE agreements ADD COLUMN origin UUID REFERENCES agreements (id);
