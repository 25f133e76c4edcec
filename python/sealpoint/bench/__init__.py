# SPDX-License-Identifier: Apache-2.0
"""The command ``ckpt bench``: compares Sealpoint with other checkpoint libraries on the user's storage.

_command.py parses options, _place.py manages the folder, _state.py defines the saved states, _peers.py the libraries. _measure.py
measures times in rounds; _mishaps.py flips bits and kills saves; both call the processes of _ranks.py, which run _worker.py.
_results.py holds the results; _table.py and _page.py show them.
"""
