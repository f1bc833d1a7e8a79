"""A dataset on DuckDB."""
