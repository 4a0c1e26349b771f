"""`headrace serve` on a socket that whoever starts it has bound, who may give it to others as well.

    python listening.py DESCRIPTOR [OPTION]...

The options are those of `serve`; the address among them is not looked at.
"""

from __future__ import annotations

import socket
import sys

from headrace.web.commands import cli
from headrace.web.commands.serve import serve
from headrace.web.files.reading import Files

if __name__ == "__main__":
    _, number, *options = sys.argv
    given = cli.serve.make_context("serve", options).params
    files = Files(given["config"], given["connections"], given["secrets"], given["server_config"])
    listening = socket.socket(fileno=int(number))
    sys.exit(serve(files, lambda: listening, data_dir=given["data_dir"]))
