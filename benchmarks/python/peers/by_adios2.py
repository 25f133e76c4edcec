# SPDX-License-Identifier: Apache-2.0
"""ADIOS2 by its package for Python."""

import numpy as np

from peers.by_hdf5 import bits
from peers.measure import sync_files
from peers.peer import FilePerRank


class Adios2(FilePerRank):
    needs = ("adios2",)
    suffix = ".bp"
    options = ("adios2 of the package index, which is built without MPI: a folder of BP5 per rank, then fsync of its files; "
               "deferred reads, straight into the state if they are contiguous there. It has no checksum")

    @classmethod
    def version(cls):
        import adios2

        return f"{adios2.__version__}, {'with' if adios2.is_built_with_mpi else 'without'} MPI"

    def write_file(self, state, file):
        import adios2

        with adios2.Stream(str(file), "w") as stream:
            for held in state:
                array = bits(held.local)
                stream.write(held.tensor.name, array, array.shape, [0] * array.ndim, array.shape)
        sync_files(*file.iterdir(), file, file.parent)

    def read_file(self, file, wanted):
        import adios2

        io = adios2.Adios().declare_io("load")
        engine, copies = io.open(str(file), adios2.Mode.ReadRandomAccess), []
        for held, box, common in wanted:
            into, source = bits(held.local)[common.slices(held.box)], common.slices(box)
            target = into if into.flags.c_contiguous else np.empty_like(into)
            variable = io.inquire_variable(held.tensor.name)
            variable.set_selection([[part.start for part in source], [part.stop - part.start for part in source]])
            engine.get(variable, target, adios2.Mode.Deferred)
            copies += [(into, target)] if target is not into else []
        engine.perform_gets()
        engine.close()
        for into, target in copies:
            into[...] = target


THE_PEER = Adios2
