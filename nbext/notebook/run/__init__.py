"""What each magic does once its line is parsed; its grammar stands beside its function.

query       %%segment_query and %segment: run, count, explain, dry-run, read, export
background  --bg: a segment that runs while the notebook goes on
metadata    %token and %nft: metadata and search
root        %nbext: the registry of its commands; those of the connection, the history, the forms, and fetch
settings    the commands of %nbext that list and change settings
analysis    the commands of %nbext that compare segments
examples    nbext examples, which is %nbext examples too: a copy of the notebooks
"""
