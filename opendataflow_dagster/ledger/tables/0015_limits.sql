-- What commands could not read when it was typed, and then showed no other row either. Older rows stay as they are.
alter table dataflow.job add constraint job_item_has_a_name check (itemtype <> '') not valid;
alter table dataflow.job_policy add constraint attempts_are_countable check (max_attempts <= 1000000) not valid;
alter table dataflow.dataset add constraint code_version_is_short check (octet_length(code_version) <= 200) not valid;
alter table dataflow.job_control add constraint paused_is_a_time check (paused >= '1970-01-01 00:00 UTC' and paused < '9000-01-01 00:00 UTC') not valid;
