"""Files on disk, as outputs write them: paths as options, directories without links, and parts."""
