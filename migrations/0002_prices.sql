-- What an agreement costs, in millionths of a currency; null where nothing is priced.
ALTER TABLE agreements ADD COLUMN price_micros BIGINT;
ALTER TABLE agreements ADD COLUMN price_currency TEXT;
