"""Bodies in, answers out, and the contract as OpenAPI."""
