"""The command with one transform more, which ends the process.

python withpoison.py [OPTION]...
"""

from __future__ import annotations

from pathlib import Path

from headrace import operators
from headrace.web.commands.cli import main

if __name__ == "__main__":
    operators.__path__.append(str(Path(__file__).with_name("deadly")))
    main()
