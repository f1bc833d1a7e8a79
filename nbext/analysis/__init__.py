"""Segments side by side: each function asks for many counts at once and returns a table whose cells are segments.

compare     what segments have in common, what each condition takes, how a token is spread over its holders
over_time   how many matched a segment through time, who joined and left, which cohorts stayed
holdings    what one or a few wallets hold, and what those of a segment hold more than others do
segments    a segment as it is given, combined with others and counted; the table of an analysis
charts      the one style of all charts
"""
