-- One way to claim and one way to publish: no second description of a Job, and no special case of a chunk.
drop table dataflow.job_terms;
alter table dataflow.runnable drop column is_plain, drop column file_count;

-- An answer is a problem with its facts; the sentence is written by the program that shows it. What 0.1.0 stored is a
-- sentence already, and stays one.
alter table dataflow.verdict add column problems jsonb not null default '[]';
update dataflow.verdict v
   set problems = (select jsonb_agg(jsonb_build_object('question', q.question, 'problem', 'TEXT', 'text', q.answer))
                     from (values ('READY', v.ready), ('RIGHT', v.right_data), ('PLACED', v.placed), ('VALID', v.valid), ('SAFE', v.safe))
                          as q(question, answer)
                    where q.answer is not null)
 where coalesce(v.ready, v.right_data, v.placed, v.valid, v.safe) is not null;
alter table dataflow.verdict
    drop constraint a_claim_has_five_yes,
    drop column ready, drop column right_data, drop column placed, drop column valid, drop column safe,
    add constraint a_claim_has_five_yes check (claim_id is null or forced or (code is null and problems = '[]'));
