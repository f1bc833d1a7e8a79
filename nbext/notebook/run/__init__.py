"""What each magic does once its line is parsed.

segment     %%segment_query and %segment: run, count, explain, dry-run, read, export
background  --bg: a segment that runs while the notebook goes on
token_nft   %token and %nft: metadata and search
analysis    the commands of %nbext that compare segments
examples    nbext examples and %nbext examples: a copy of the notebooks
fetch       %nbext fetch: a node's logs, with the words of the command
root        %nbext, the root of the other commands (status, connect, set, ...): one function per command
"""
