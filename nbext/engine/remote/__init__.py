"""Engines on other machines.

    dataset    a segment as one SQL statement, sent as text
    spark      a cluster that reads the generation's Parquet files
    warehouse  BigQuery and Trino, with the same tables loaded there
"""
