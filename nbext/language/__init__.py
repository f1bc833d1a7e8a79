"""The segment language: from a request in JSON to a question for an engine. Knows no engine but its expressions.

language     the steps: parse, resolve, compile; the canonical form of a plan, its id, its columns
fields       groups, keys beside the conditions, shared fields, limits
field_types  how each type of field is read, and its JSON Schema
conditions/  one file for each condition: all that it is
parse        the JSON as a query, or all its errors at once
lookup       chains, symbols, amounts and times of a query on some data
model        the query and the plan
describe     the errors of one request, gathered, and phrases of a plan in English
json_schema  the schema of requests, and ``nbext schema``
"""
