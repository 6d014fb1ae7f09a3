-- The sweep asks which versions of any DataSet are in, below or above a folder.
create index data_manifest_by_location on dataflow.data_manifest (location collate "C");
