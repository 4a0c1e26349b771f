"""Whether few enough tests failed that it may have been for want of a processor: they are run again alone.

Says which they were. Exits with 1 where none did, or more than a busy machine explains.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

MOST = 3
FAILED = Path(".pytest_cache/v/cache/lastfailed")
"""What pytest keeps of its last run: an object whose keys are the tests that failed."""


def main() -> int:
    """Tell which tests failed that are to be run again."""
    failed = json.loads(FAILED.read_text()) if FAILED.exists() else {}
    if not 0 < len(failed) <= MOST:
        return 1
    # Beside others a test has its group behind its name, alone it has none.
    failed = {re.sub(r"@\w+$", "", name): True for name in failed}
    FAILED.write_text(json.dumps(failed))
    print("failed beside others, and run again alone:", *failed, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
