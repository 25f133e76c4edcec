# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in memory, of blobs of the writer in Python."""

from sealpoint_writer.blob import Blob
from sealpoint_writer.index import index_file
from sealpoint_writer.items import Object, Tensor
from sealpoint_writer.layout import commit_marker

ATTEMPT = b"\xa7" * 16
STEP = 7


def blob(number):
    return Blob(ATTEMPT, STEP, identity=bytes([number]) * 16)


def u8_tensor(name, *shape):
    return Tensor(name, shape, dtype=6, element_size=1, chunk_size=4096)


def add_object(to, name, data):
    to.add(Object(name, "text/plain", len(data), 4096), data)


def checkpoint(*blobs):
    """Files by name."""
    finished = [item.finish() for item in blobs]
    summaries = [summary for _, summary in finished]
    files = {f"{summary.id.hex()}.blob": data for data, summary in finished}
    index = index_file(ATTEMPT, STEP, summaries, 0, (), {}, 0)
    files[f"{ATTEMPT.hex()}.index"] = index
    files["COMMIT"] = commit_marker(ATTEMPT, STEP, index, len(blobs), sum(summary.file_size for summary in summaries))
    return files
