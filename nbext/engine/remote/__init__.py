"""Engines elsewhere: Spark, BigQuery, Trino."""
