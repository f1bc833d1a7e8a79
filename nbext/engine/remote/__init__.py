"""Engines on other machines.

    dataset     questions as SQL text to a backend, and its answers
    spark       a Spark cluster, which reads the tables as Parquet
    warehouse   BigQuery and Trino, which hold the tables themselves
"""
