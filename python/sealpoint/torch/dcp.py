# SPDX-License-Identifier: Apache-2.0
"""Storage reader and writer for torch.distributed.checkpoint. To use them, change one import and one argument.

    import torch.distributed.checkpoint as dcp
    from sealpoint.torch.dcp import StorageReader, StorageWriter

    dcp.save(state, storage_writer=StorageWriter("checkpoint"))
    dcp.load(state, storage_reader=StorageReader("checkpoint"))
"""

from sealpoint.torch._dcp_reader import StorageReader
from sealpoint.torch._dcp_writer import StorageWriter

__all__ = ["StorageReader", "StorageWriter"]
