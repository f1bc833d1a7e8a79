"""Questions: their shape, their values, exact amounts as expressions."""
