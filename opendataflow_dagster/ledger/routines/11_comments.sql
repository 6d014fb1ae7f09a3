-- What each table is for, as \d+ shows it.
comment on table dataflow.dataset is 'A DataSet: a named, partitioned set of data. A row inserted by plain SQL is external and trusted.';
comment on table dataflow.job is 'One row for each IN and OUT DataSet of a Job, and one for each of its environment variables (itemtype is the name).';
comment on table dataflow.job_policy is 'How a Job is run. A Job without a row here has the defaults.';
comment on table dataflow.job_control is 'The operators'' live limits of a Job. Registration never changes them.';
comment on table dataflow.job_event is 'Every change of job_control by any client. Append only.';
comment on table dataflow.registry_event is 'Every change of dataset, job and job_policy by any client. Append only.';
comment on sequence dataflow.claim_id is 'Fencing tokens: a newer claim always has a larger one.';
comment on table dataflow.job_run is 'One execution of a Job, over one chunk or many.';
comment on table dataflow.datastatus is 'OUT: the producer''s row, a lock for everyone. IN: a consumer''s row, a lock for that Job alone.';
comment on table dataflow.chunk_input is 'Which input chunks a chunk needs, where the mapping is `listed`.';
comment on table dataflow.data_manifest is 'The immutable record of each published version of a chunk.';
comment on table dataflow.version_sweep is 'Versions whose files retention removed; a rollback to them is refused.';
comment on table dataflow.verdict is 'The five answers of every claim and every refusal. Append only.';
comment on table dataflow.chunk_event is 'Every change of datastatus by any client. Append only.';
comment on table dataflow.runnable is 'Derived: the chunks whose inputs are all READY and whose output is free, with the answers to the five questions. Triggers maintain it; odf heal --rebuild restores it.';
comment on table dataflow.unsettled is 'Jobs whose definition changed after their chunks were evaluated, and single chunks that could not be. Nobody claims them until they are.';
comment on table dataflow.reported is 'Versions that an orchestrator has recorded. Derived: a deleted row is reported again.';
comment on column dataflow.verdict.problems is 'The nos among the five answers, each with its question, problem and facts; empty: five yes.';
