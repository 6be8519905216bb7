"""Files and processes: archives, tables, audio, stages with atomic output, progress, jobs."""
