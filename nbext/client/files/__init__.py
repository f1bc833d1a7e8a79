"""Rows as text and in files.

csv_text  a CSV as a table, while it arrives
writer    rows into a CSV, JSON, Parquet or Arrow file that is whole or absent, with no formula for a spreadsheet
"""
