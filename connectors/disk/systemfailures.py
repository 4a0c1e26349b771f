"""Of which class is what a file system says: by the name of its error number."""

from __future__ import annotations

from errno import ENOENT, errorcode

from headrace.compiler.component.failureclasses import FailureClasses, FailureRow
from headrace.compiler.errors import FailureClass

MANUAL = "https://man7.org/linux/man-pages/man2/write.2.html"
"""What Linux says of writing."""

FAILURES = FailureClasses(
    FailureRow("full", "unavailable", ("ENOSPC",), "the disk is full"),
    FailureRow(
        "device",
        "unavailable",
        ("EDQUOT", "EIO"),
        "what the user may have on the disk is used up, or the disk fails",
        source=MANUAL,
    ),
    FailureRow(
        "open_files", "unavailable", ("EMFILE", "ENFILE"), "as many files are open as may be"
    ),
    FailureRow("denied", "misconfigured", ("EACCES",), "the directory may not be written to"),
    FailureRow(
        "forbidden",
        "misconfigured",
        ("EPERM",),
        "the file is one that may not be changed",
        source=MANUAL,
    ),
    FailureRow("read_only", "misconfigured", ("EROFS",), "the file system is read only"),
    FailureRow(
        "no_directory",
        "misconfigured",
        ("ENOENT", "ENOTDIR"),
        "the directory was removed, or something else is in its place",
    ),
    FailureRow(
        "file_size",
        "misconfigured",
        ("EFBIG",),
        "a part is larger than files may be there, or those of this process",
    ),
)


def failure_of(cause: OSError) -> FailureClass:
    """Return the class of what failed because of what a file system says."""
    number = ENOENT if isinstance(cause, FileNotFoundError) else cause.errno
    return FAILURES.of(errorcode.get(number or 0))
