"""Tables into files, whole or absent."""
