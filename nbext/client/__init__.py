"""One method per operation, each of which returns a DataFrame. Knows HTTP and pandas; knows no notebook."""
