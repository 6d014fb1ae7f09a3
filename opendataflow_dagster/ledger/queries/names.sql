-- name: dataset_names
-- The registered DataSets.
select d.datasetid as name from dataflow.dataset d order by 1 limit 20000

-- name: job_names
-- The registered Jobs.
select distinct j.jobid as name from dataflow.job j order by 1 limit 20000

-- name: dataids_around
-- The chunks of a DataSet before and after this dataid, in the order of the index.
(select s.dataid as name from dataflow.datastatus s
  where s.datasetid = %(datasetid)s and s.locktype = 'OUT' and s.dataid <= %(dataid)s order by s.dataid desc limit 1000)
union
(select s.dataid from dataflow.datastatus s
  where s.datasetid = %(datasetid)s and s.locktype = 'OUT' and s.dataid >= %(dataid)s order by s.dataid limit 1000)
