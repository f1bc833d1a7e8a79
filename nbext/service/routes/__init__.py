"""One function for each operation: it checks, calls the part that does the work, and answers.

segments    execute, profile, read, cancel, long polling, and the exports as JSON, CSV and Arrow; explanations, counts,
            funnels, holdings: answered at once, nothing stored
lookups     search, sign-up, token and collection metadata
operator    about, schema, health, metrics, the OpenAPI document and its page
"""
