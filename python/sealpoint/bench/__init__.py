# SPDX-License-Identifier: Apache-2.0
"""The command ``ckpt bench``: Sealpoint beside other ways to save a training, on the storage of who runs it.

_command.py has the options, _place.py the folder, _state.py what is saved, _peers.py who saves it. _measure.py measures times
in rounds, _mishaps.py flips bits and kills saves; both call the processes of _ranks.py, which run _worker.py. _results.py has
what came of it, _table.py and _page.py show it.
"""
