"""A dataset on Spark.

dataset    how the statements of a question run as jobs, and end
session    Spark with the tables of a generation, which it reads as Parquet
place      generations at a URL, as a cluster's ingest writes them and Spark reads them
"""
