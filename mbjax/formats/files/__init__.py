"""Which files may be read, and where the files are that a robot file names."""
