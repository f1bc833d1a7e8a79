"""What lies in a data folder.

    generation     immutable folders of tables, which of them is served, and whether it is whole
    process_lock   which processes are alive on the folder
"""
