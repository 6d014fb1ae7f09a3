-- The lines of the author's files in which a claim failed. The reason is in datastatus and chunk_event.
create table dataflow.failure (
    claim_id  bigint primary key,
    traceback text not null
);
