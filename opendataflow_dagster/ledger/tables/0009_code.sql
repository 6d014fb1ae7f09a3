-- The code that made a version: as its author declares it, or a fingerprint. Null: unknown, as for older versions.
alter table dataflow.data_manifest add column code_version text;
-- OUT: that of the current version, so that chunks made by other code are counted without reading a manifest.
alter table dataflow.datastatus add column code_version text;
-- The code that makes the next version. Null: unknown.
alter table dataflow.dataset add column code_version text;
