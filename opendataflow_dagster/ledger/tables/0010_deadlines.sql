-- When chunks are expected. Null: no deadline.
alter table dataflow.dataset
    -- 06:00: the chunk of a partition is expected READY 6 hours after the partition ends, by the clock of the DataSet's time zone.
    add column expected_by text
        constraint expected_by_is_a_time check (expected_by ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$' and expected_by <> '00:00'),
    -- The newest READY chunk may be this old.
    add column fresh_within interval
        constraint fresh_within_is_a_span check (fresh_within between interval '1 minute' and interval '366 days'),
    add constraint only_partitions_of_time_are_expected_by_a_time
        check (expected_by is null or partitions ->> 'kind' in ('hourly', 'daily', 'weekly', 'monthly'));
