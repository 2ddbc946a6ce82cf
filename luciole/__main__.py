"""``python -m luciole`` is ``luciole``."""

import sys

from luciole.tools.main import main

sys.exit(main())
