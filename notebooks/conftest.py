"""For tests of the notebooks: where the extra `evm` is not installed the notebook that needs it is left out."""

import os
from importlib.util import find_spec

collect_ignore = [] if find_spec("eth_tester") and find_spec("vyper") else ["08_from_a_node.ipynb"]
# A bar appears where a call takes longer than half a second, as on a busy machine, and is an output of its own.
os.environ["NBEXT_PROGRESS"] = "false"
