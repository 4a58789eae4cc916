-- A restart looks after what may still run of work that was lost, however long the history has grown.
CREATE INDEX agreements_lost ON agreements (ended_us) WHERE outcome = 'lost';
