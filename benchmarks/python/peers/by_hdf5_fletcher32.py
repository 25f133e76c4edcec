# SPDX-License-Identifier: Apache-2.0
"""HDF5 with its checksum."""

from peers.by_hdf5 import CHUNK_BYTES, Hdf5


class Hdf5Fletcher32(Hdf5):
    options = ("as hdf5, with datasets in chunks of whole rows of 4 MiB and fletcher32=True, which is compared in "
               "each read; verification by reading all of them")
    operations = Hdf5.operations | {"verify"}

    def dataset_options(self, array):
        rows = max(1, CHUNK_BYTES * array.shape[0] // max(1, array.nbytes))
        return {"chunks": (min(rows, array.shape[0]), *array.shape[1:]), "fletcher32": True}

    def verify(self, path):
        import h5py

        with h5py.File(self.file(path, self.rank), "r", libver="latest") as opened:
            for dataset in opened.values():
                dataset[...]


THE_PEER = Hdf5Fletcher32
