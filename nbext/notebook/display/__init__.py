"""How tables are shown."""
