"""What holds for every test, and for the notebooks that nbval runs beside them."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile

# Kernels and commands that tests start inherit these. Nobody's own data, service or key is touched,
# and no bar comes or goes with the machine's speed.
_data = tempfile.mkdtemp(prefix="nbext-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
for name in [name for name in os.environ if name.startswith("NBEXT_")]:
    del os.environ[name]
os.environ["NBEXT_DATA_DIR"] = _data
os.environ["NBEXT_PROGRESS"] = "false"

# A shell that starts the tests in the background has them ignore interrupts, for good; some tests send interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
