# SPDX-License-Identifier: Apache-2.0
"""fill_disk.py FILE PAGES: makes FILE so large that its file system has only so many free pages left."""
import os
import sys

path, pages = sys.argv[1], int(sys.argv[2])
with open(path, "wb") as filler:
    space = os.fstatvfs(filler.fileno())
    free = space.f_bavail * space.f_frsize - pages * 4096
    if free > 0:
        os.posix_fallocate(filler.fileno(), 0, free)
