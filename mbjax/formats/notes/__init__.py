"""What becomes of the parts of a file that is read, or of a model that is written."""
