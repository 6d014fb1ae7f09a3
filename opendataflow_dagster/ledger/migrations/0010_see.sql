-- For the eyes of operators: what happened lately, without reading what happened ever. Events are appended in the
-- order of time, so a summary for each range of pages is enough, and writing an event costs next to nothing.
create index chunk_event_in_time on dataflow.chunk_event using brin (at) with (pages_per_range = 32, autosummarize = on);
