# SPDX-License-Identifier: Apache-2.0
"""The command ``ckpt bench``: compares Sealpoint with other checkpoint libraries, on the user's storage.

_command.py parses options, _place.py manages the folder, _state.py defines the saved states, and _peers.py defines the libraries.
_measure.py measures times in rounds, and _mishaps.py flips bits and kills saves. Both call the rank processes: _ranks.py starts
these processes, and _worker.py runs in them. _results.py stores the results; _table.py and _page.py show the results.
"""
