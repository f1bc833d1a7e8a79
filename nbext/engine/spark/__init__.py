"""A dataset on Spark.

dataset    a segment as one SQL statement, sent as text
session    Spark with the tables of a generation, which it reads as Parquet
place      generations at a URL, as a cluster's ingest writes them and Spark reads them
"""
