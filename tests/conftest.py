"""Makes the modules beside the tests (kernels.py, generator.py, tolerances.py, ...) importable."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
