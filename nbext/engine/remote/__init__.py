"""Engines on other machines.

dataset    a segment as one SQL statement, sent as text
backends   Spark, which reads the generation's Parquet files; BigQuery and Trino, with the same tables
place      generations at a URL, as a cluster's ingest writes them and Spark reads them
load       the command line of `nbext load`: the statements that make those tables
"""
