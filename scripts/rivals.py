#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Sealpoint with alternatives: bit flips, killed saves, another number of ranks (docs/evidence/comparison.md).

  PYTHONPATH=build/python/python build/venv/bin/python scripts/rivals.py [--only NAMES] [--flips N] [--kills N] [--mib N]

Each contender saves the same state from two ranks: a weight and its optimizer moment, cut by rows, and a count. It uses its own
functions with their defaults. Contenders that are not installed are reported as absent. Exit status: 0; 1 if Sealpoint is absent
or its row is not as required; 64 for an error in the arguments.

Bits: flips one bit of a checkpoint and loads it, at N places spread evenly over the bytes of the tensors and at N over all other
bytes, each time on a new copy.
Kills: saves generation 2 to the path of a checkpoint of generation 1, and kills the save by SIGKILL at N moments spread evenly
over the duration of such a save. Every second time rank 1 is stopped at that moment and all ranks are killed a second later, as
when one node hangs and the job is ended. Then the checkpoint is loaded again. Sealpoint refuses to save to the same path, which is
checked; its generation 2 is saved next to generation 1 in a series.
Mesh: three ranks load the checkpoint of two, each its own rows.
"""

import argparse
import collections
import contextlib
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
OURS = "sealpoint"
WRITERS, READERS = 2, 3
CALL_LIMIT_SECONDS = 60
# Ranks whose peer has failed may wait for it without end.
GRACE_SECONDS = 5


# The state: of generation g, bytes that no codec makes smaller, so that they are found in files.


class State:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.names = ("model.w", "optimizer.w.exp_avg")

    def whole(self, generation):
        """{name: array}."""
        import numpy

        random = numpy.random.default_rng(generation)
        made = {}
        for name in self.names:
            bits = random.integers(0, 1 << 32, (self.rows, self.columns), "u4")
            bits[(bits >> 23 & 0xFF) == 0xFF] ^= 1 << 23  # no NaN, which need not stay as it is
            made[name] = bits.view("f4")
        return made

    def count(self, generation):
        """That of the optimizer's steps, which all ranks have."""
        return 1000 + generation

    def slice_of(self, rank, size):
        return slice(self.rows * rank // size, self.rows * (rank + 1) // size)

    def part(self, generation, rank, size):
        return {name: array[self.slice_of(rank, size)] for name, array in self.whole(generation).items()}

    def judge(self, parts, count, rank, size):
        """Which generations what a rank loaded is of: of {1, 2, "neither"}."""
        found = {generation for generation in (1, 2) if self.count(generation) == count} or {"neither"}
        old, new = self.part(1, rank, size), self.part(2, rank, size)
        for name in self.names:
            if parts[name].shape != old[name].shape:
                return {"neither"}
            bits, is_old = parts[name].view("u4"), parts[name].view("u4") == old[name].view("u4")
            is_new = bits == new[name].view("u4")
            found |= ({1} if is_old.any() else set()) | ({2} if is_new.any() else set())
            found |= set() if (is_old | is_new).all() else {"neither"}
        return found


def wording(found):
    """What a whole job loaded."""
    if "neither" in found:
        return "wrong"
    return {(1,): "old", (2,): "new", (1, 2): "mixed"}[tuple(sorted(found))]


# The contenders. An object of one is made in each process that saves or loads, when all modules are imported.


class Contender:
    """All ranks call ``make``, which returns what ``save`` takes, ``save``, and ``load``: (parts of the tensors, count)."""

    title = ""
    packages = ()  # folders of build, each the last of those that fit
    modules = ("torch",)
    is_one_process = False  # whose devices are the ranks

    def __init__(self, rank, size, rendezvous):
        import datetime

        import torch.distributed as dist

        self.rank, self.size = rank, size
        dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=size,
                                timeout=datetime.timedelta(seconds=CALL_LIMIT_SECONDS / 2))
        dist.barrier()  # one that has nothing to exchange might end before the others have connected to it

    @classmethod
    def version(cls):
        import torch

        return f"PyTorch {torch.__version__}"


class InDTensors(Contender):
    def state_of(self, state, parts, count):
        """Nested mappings with DTensors over these parts."""
        import torch
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard

        mesh = init_device_mesh("cpu", (self.size,))
        made = {name: DTensor.from_local(torch.from_numpy(part), mesh, [Shard(0)], shape=(state.rows, state.columns),
                                         stride=(state.columns, 1), run_check=False)
                for name, part in parts.items()}
        return {**made, "optimizer.w.step": torch.tensor(count)}

    def make(self, state, generation):
        return self.state_of(state, state.part(generation, self.rank, self.size), state.count(generation))

    def load(self, folder, state):
        parts = {name: part * 0 for name, part in state.part(1, self.rank, self.size).items()}
        into = self.state_of(state, parts, 0)
        self.read(into, folder)
        return parts, into["optimizer.w.step"].item()


class Sealpoint(InDTensors):
    title = "Sealpoint"
    modules = ("torch", "sealpoint.torch")

    @classmethod
    def version(cls):
        import sealpoint

        return f"Sealpoint {sealpoint.__version__}"

    def save(self, folder, made):
        import sealpoint.torch

        sealpoint.torch.save(made, folder, series=True, step=made["optimizer.w.step"].item())

    def read(self, into, folder):
        import sealpoint.torch

        sealpoint.torch.load(into, self.newest(folder))

    def newest(self, folder):
        import sealpoint

        newest = sealpoint.Series(folder).newest()
        if newest is None:
            raise sealpoint.NotFoundError("the series has no checkpoint")
        return newest.entry.path

    def save_again(self, folder, made):
        """To the same path as before."""
        import sealpoint.torch

        sealpoint.torch.save(made, self.newest(folder))


class Dcp(InDTensors):
    title = "torch.distributed.checkpoint"
    modules = ("torch", "torch.distributed.checkpoint", "torch.distributed.tensor")

    def save(self, folder, made):
        import torch.distributed.checkpoint as dcp

        dcp.save(made, checkpoint_id=folder)

    def read(self, into, folder):
        import torch.distributed.checkpoint as dcp

        dcp.load(into, checkpoint_id=folder)


class Megatron(Contender):
    title = "megatron-core dist_checkpointing"
    packages = ("frameworks/megatron-core-0.19*", "frameworks/psutil-*")
    modules = ("mcore_shim", "torch")

    @classmethod
    def version(cls):
        import importlib.metadata

        return f"megatron-core {importlib.metadata.version('megatron-core')}"

    def state_of(self, parts, count):
        import torch
        from megatron.core.dist_checkpointing import ShardedTensor

        made = {name: ShardedTensor.from_rank_offsets(name, torch.from_numpy(part), (0, self.rank, self.size))
                for name, part in parts.items()}
        made["optimizer.w.step"] = ShardedTensor.from_rank_offsets("optimizer.w.step", torch.tensor([count]),
                                                                   replica_id=self.rank)
        return made

    def make(self, state, generation):
        return self.state_of(state.part(generation, self.rank, self.size), state.count(generation))

    def save(self, folder, made):
        from megatron.core import dist_checkpointing

        pathlib.Path(folder).mkdir(exist_ok=True)
        dist_checkpointing.save(made, str(folder))

    def load(self, folder, state):
        from megatron.core import dist_checkpointing

        parts = {name: part * 0 for name, part in state.part(1, self.rank, self.size).items()}
        loaded = dist_checkpointing.load(self.state_of(parts, 0), str(folder))
        return {name: loaded[name].numpy() for name in state.names}, loaded["optimizer.w.step"].item()


class TorchSave(Contender):
    """A file per rank, with its own rows."""

    title = "torch.save, a file per rank"

    def file(self, folder):
        return pathlib.Path(folder) / f"rank{self.rank}.pt"

    def make(self, state, generation):
        import torch

        parts = state.part(generation, self.rank, self.size)
        return {**{name: torch.from_numpy(part).clone() for name, part in parts.items()}, "step": state.count(generation)}

    def save(self, folder, made):
        import torch

        pathlib.Path(folder).mkdir(exist_ok=True)
        torch.save(made, self.file(folder))

    def load(self, folder, state):
        import torch

        loaded = torch.load(self.file(folder), weights_only=True)
        return {name: loaded[name].numpy() for name in state.names}, loaded["step"]


class OneFile(Contender):
    """One file, which rank 0 writes once it has gathered all rows; each rank reads its own."""

    name = ""

    def file(self, folder):
        return pathlib.Path(folder) / self.name

    def make(self, state, generation):
        import numpy

        return {**state.part(generation, self.rank, self.size), "step": numpy.array([state.count(generation)])}

    def save(self, folder, made):
        import numpy
        import torch.distributed as dist

        parts = [None] * self.size
        dist.gather_object(made, parts if self.rank == 0 else None)
        if self.rank == 0:
            pathlib.Path(folder).mkdir(exist_ok=True)
            whole = {name: numpy.concatenate([part[name] for part in parts]) for name in made if name != "step"}
            self.write({**whole, "step": made["step"]}, self.file(folder))
        dist.barrier()


class Safetensors(OneFile):
    title = "safetensors, one file"
    name = "model.safetensors"
    modules = ("torch", "safetensors.numpy")

    @classmethod
    def version(cls):
        import safetensors

        return f"safetensors {safetensors.__version__}"

    def write(self, arrays, file):
        from safetensors.numpy import save_file

        save_file(arrays, file)

    def load(self, folder, state):
        from safetensors import safe_open

        with safe_open(self.file(folder), "numpy") as file:
            rows = state.slice_of(self.rank, self.size)
            return {name: file.get_slice(name)[rows] for name in state.names}, file.get_tensor("step")[0].item()


class Hdf5(OneFile):
    title = "HDF5, one file"
    name = "model.h5"
    packages = ("peers-packages",)
    modules = ("torch", "h5py")

    @classmethod
    def version(cls):
        import h5py

        return f"HDF5 {h5py.version.hdf5_version}, h5py {h5py.__version__}"

    def write(self, arrays, file):
        import h5py

        with h5py.File(file, "w") as opened:
            for name, array in arrays.items():
                opened.create_dataset(name, data=array, **self.options(array))

    def options(self, array):
        return {}

    def load(self, folder, state):
        import h5py

        with h5py.File(self.file(folder)) as file:
            rows = state.slice_of(self.rank, self.size)
            return {name: file[name][rows] for name in state.names}, file["step"][0].item()


class Hdf5Fletcher32(Hdf5):
    title = "HDF5, one file, with fletcher32"

    def options(self, array):
        return {"fletcher32": True, "chunks": (1, *array.shape[1:])}  # a chunk per row, whose bytes are then together


class Adios2(OneFile):
    title = "ADIOS2, one BP5 file"
    name = "model.bp"
    packages = ("peers-packages",)
    modules = ("torch", "adios2")

    @classmethod
    def version(cls):
        import adios2

        return f"ADIOS2 {adios2.__version__}"

    def write(self, arrays, file):
        import adios2

        with adios2.Stream(str(file), "w") as stream:
            for name, array in arrays.items():
                stream.write(name, array, array.shape, [0] * array.ndim, array.shape)

    def load(self, folder, state):
        import adios2

        with adios2.FileReader(str(self.file(folder))) as file:
            rows = state.slice_of(self.rank, self.size)
            box = {"start": [rows.start, 0], "count": [rows.stop - rows.start, state.columns]}
            return {name: file.read(name, **box) for name in state.names}, file.read("step")[0].item()


class Orbax(Contender):
    title = "Orbax, StandardCheckpointer"
    packages = ("frameworks/jax",)
    modules = ("jax", "orbax.checkpoint")
    is_one_process = True

    @classmethod
    def version(cls):
        import importlib.metadata

        return f"Orbax {importlib.metadata.version('orbax-checkpoint')}"

    def __init__(self, rank, size, rendezvous):
        import jax

        self.rank, self.size = rank, 1
        jax.config.update("jax_num_cpu_devices", size)
        mesh = jax.make_mesh((size,), ("rows",))
        self.by_rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
        self.everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def make(self, state, generation):
        import jax
        import numpy

        made = {name: jax.device_put(array, self.by_rows) for name, array in state.whole(generation).items()}
        made["step"] = jax.device_put(numpy.int32(state.count(generation)), self.everywhere)
        return made

    def save(self, folder, made):
        import orbax.checkpoint as ocp

        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(pathlib.Path(folder).resolve(), made, force=True)

    def load(self, folder, state):
        import jax
        import numpy
        import orbax.checkpoint as ocp

        like = {name: jax.ShapeDtypeStruct((state.rows, state.columns), numpy.float32, sharding=self.by_rows)
                for name in state.names}
        like["step"] = jax.ShapeDtypeStruct((), numpy.int32, sharding=self.everywhere)
        with ocp.StandardCheckpointer() as checkpointer:
            loaded = checkpointer.restore(pathlib.Path(folder).resolve(), like)
        return {name: numpy.asarray(loaded[name]) for name in state.names}, int(loaded["step"])


CONTENDERS = {OURS: Sealpoint, "dcp": Dcp, "megatron": Megatron, "torch": TorchSave, "safetensors": Safetensors, "orbax": Orbax,
              "hdf5": Hdf5, "hdf5-fletcher32": Hdf5Fletcher32, "adios2": Adios2}


# Ranks: processes that stay, since importing what they need takes seconds.


def serve(name, rank, size, folder, connection):
    """One rank: answers calls until it is killed."""
    os.setsid()  # processes that it starts are killed with it
    quiet = os.open(folder / f"log{rank}", os.O_WRONLY | os.O_CREAT)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    kind = CONTENDERS[name]
    try:
        import_modules(kind)
        contender = kind(rank, size, folder / "rendezvous")
    except BaseException as error:
        connection.send(("not begun", _named(error)))
        return
    connection.send(("begun", ""))
    while True:
        call, arguments = connection.recv()
        try:
            connection.send(("done", globals()[call](contender, *arguments)))
        except BaseException as error:
            connection.send(("error", _named(error)))


class Ranks:
    def __init__(self, kind, size, work):
        self._kind, self._size, self._work = kind, size, work
        self._ranks = []  # (process, connection); none before the first call, or once they were killed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self, call, *arguments):
        """All ranks call call(contender, *arguments).

        Errors: RuntimeError (ranks that did not begin).
        """
        if not self._ranks:
            self._begin()
        for _, connection in self._ranks:
            connection.send((call.__name__, arguments))

    def _begin(self):
        context, folder = multiprocessing.get_context("spawn"), pathlib.Path(tempfile.mkdtemp(dir=self._work))
        name = next(name for name, kind in CONTENDERS.items() if kind is self._kind)
        for rank in range(1 if self._kind.is_one_process else self._size):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(name, rank, self._size, folder, theirs))
            process.start()
            theirs.close()
            self._ranks.append((process, ours))
        for outcome, text in self._answers(CALL_LIMIT_SECONDS):
            if outcome != "begun":
                raise RuntimeError(text)

    def _answers(self, seconds):
        end, answers = time.monotonic() + seconds, []
        for _, connection in self._ranks:
            try:
                is_there = connection.poll(max(0, end - time.monotonic()))
                answers.append(connection.recv() if is_there else ("died", "it hung"))
            except (EOFError, OSError):
                answers.append(("died", "the process died"))
            if answers[-1][0] in ("error", "died"):
                end = min(end, time.monotonic() + GRACE_SECONDS)
        return answers

    def outcomes(self):
        """("done", value), ("error", text) or ("died", text) of each rank; who does not answer is killed."""
        answers = self._answers(CALL_LIMIT_SECONDS)
        # Ranks of whom one has failed are no longer at the same place.
        if any(outcome == "died" or outcome == "error" and len(answers) > 1 for outcome, _ in answers):
            self.kill()
        return answers

    def run(self, call, *arguments):
        self.start(call, *arguments)
        return self.outcomes()

    def signal(self, number, rank):
        os.killpg(self._ranks[rank][0].pid, number)

    def kill(self):
        for process, connection in self._ranks:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            connection.close()
        self._ranks = []


def import_modules(kind):
    for module in kind.modules:
        __import__(module)
        if module == "mcore_shim":
            sys.modules[module].install()
            __import__("megatron.core.dist_checkpointing")


def _named(error):
    """The error of a library, out of those that wrap what several ranks said."""
    inner = getattr(error, "failures", None)  # of torch.distributed.checkpoint
    if inner:
        error = next(iter(inner.values()))[0]
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:100] if text else ''}"


def save(contender, folder, state, generation, moment=None):
    """How long it took. ``moment``: a file that rank 0 makes when all ranks are about to begin."""
    made = contender.make(state, generation)
    if moment is not None:
        if not contender.is_one_process:
            import torch.distributed as dist

            dist.barrier()
        if contender.rank == 0:
            moment.touch()
    began = time.monotonic()
    contender.save(folder, made)
    return time.monotonic() - began


def save_again(contender, folder, state, generation):
    contender.save_again(folder, contender.make(state, generation))


def load(contender, folder, state):
    return state.judge(*contender.load(folder, state), contender.rank, contender.size)


def loaded(ranks, folder, state):
    """"old", "new", "mixed" or "wrong"; or the first rank's error."""
    outcomes = ranks.run(load, folder, state)
    for what in ("error", "died"):
        for outcome, text in outcomes:
            if outcome == what:
                return text
    return wording(set().union(*(found for _, found in outcomes)))


def must(outcomes):
    for outcome, text in outcomes:
        if outcome != "done":
            raise RuntimeError(text)
    return outcomes


# What is tried.


def payload_of(files, state):
    """[(file, begin, end)] of the rows of the tensors in the bytes of these files."""
    found = []
    rows = [row.tobytes() for array in state.whole(1).values() for row in array]
    for file, content in files.items():
        for row in rows:
            at = content.find(row)
            if at >= 0:
                found.append((file, at, at + len(row)))
    return found


def evenly(ranges, count):
    """Places (file, offset) in the bytes of ranges."""
    total, places = sum(end - begin for _, begin, end in ranges), []
    for number in range(count):
        rest = int(total * (number + 0.5) / count)
        for file, begin, end in ranges:
            if rest < end - begin:
                places.append((file, begin + rest, number % 8))
                break
            rest -= end - begin
    return places


def others_of(files, ranges):
    found = []
    for file, content in files.items():
        at = 0
        for begin, end in sorted((begin, end) for item, begin, end in ranges if item == file) + [(len(content), len(content))]:
            if begin > at:
                found.append((file, at, begin))
            at = max(at, end)
    return found


def try_bits(kind, work, writers, count):
    """{"tensors", "metadata": {what came of it: how often}}"""
    state, folder = State(48, 256), work / "whole"
    must(writers.run(save, folder, state, 1))
    files = {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    payload = payload_of(files, state)
    if not payload:
        raise RuntimeError("the rows of the tensors are not in its files")
    found = {}
    with contextlib.ExitStack() as stack:
        readers = writers if kind is TorchSave else stack.enter_context(Ranks(kind, 1, work))
        for what, ranges in (("tensors", payload), ("metadata", others_of(files, payload))):
            tally = collections.Counter()
            for file, at, bit in evenly(ranges, count):
                copy = work / "copy"
                shutil.copytree(folder, copy)
                content = bytearray(files[file])
                content[at] ^= 1 << bit
                (copy / file).write_bytes(content)
                tally[loaded(readers, copy, state)] += 1
                shutil.rmtree(copy)
            found[what] = dict(tally)
    return found


def try_kills(kind, work, writers, count, mib):
    """{what was loaded: how often}; and how saving to the same path was answered, if it was refused."""
    state, folder, moment = State(6 * max(1, mib * 1024 // (6 * 2 * 16)), 4096), work / "run", work / "moment"

    def begin():
        """A whole checkpoint of generation 1."""
        shutil.rmtree(folder, ignore_errors=True)
        must(writers.run(save, folder, state, 1))
        os.sync()

    begin()
    refusal = None
    if hasattr(kind, "save_again"):
        (outcome, text), *_ = writers.run(save_again, folder, state, 2)
        refusal = text if outcome == "error" else "it was not refused"
    seconds = statistics.median(max(taken for _, taken in must(writers.run(save, folder, state, 2))) for _ in range(3))
    tally = collections.Counter()
    for number in range(count):
        begin()
        moment.unlink(missing_ok=True)
        writers.start(save, folder, state, 2, moment)
        end = time.monotonic() + CALL_LIMIT_SECONDS
        while not moment.exists():
            if time.monotonic() > end:
                raise RuntimeError("the ranks did not reach the save")
            time.sleep(0.0005)
        time.sleep(seconds * (number + 0.5) / count)
        if number % 2 and not kind.is_one_process:
            writers.signal(signal.SIGSTOP, 1)
            time.sleep(1)
        writers.kill()
        tally[loaded(writers, folder, state)] += 1
    shutil.rmtree(folder, ignore_errors=True)  # a save that was killed may have removed it
    return dict(tally), refusal


def try_mesh(kind, work, writers):
    state, folder = State(48, 256), work / "mesh"
    must(writers.run(save, folder, state, 1))
    with Ranks(kind, READERS, work) as readers:
        return loaded(readers, folder, state)


def try_one(name, options):
    """A row, as JSON on standard output."""
    kind = CONTENDERS[name]
    import_modules(kind)
    with tempfile.TemporaryDirectory(prefix="rivals-", dir=options.folder) as folder:
        work = pathlib.Path(folder)
        with Ranks(kind, WRITERS, work) as writers:
            bits = try_bits(kind, work, writers, options.flips)
            kills, refusal = try_kills(kind, work, writers, options.kills, options.mib)
            mesh = try_mesh(kind, work, writers)
    print(json.dumps({"name": name, "title": kind.title, "version": kind.version(), "bits": bits, "kills": kills,
                      "refusal": refusal, "mesh": mesh}))


# The table.

STATES = ("old", "new", "mixed", "wrong")


def errors_in(tally):
    return {text: count for text, count in tally.items() if text not in STATES}


def kinds_of(errors):
    """Names of errors, the most frequent first, of which there may be many with other words."""
    kinds = collections.Counter()
    for text, count in errors.items():
        kinds[text.partition(":")[0]] += count
    return ", ".join(f"`{kind}`" if " " not in kind else kind for kind, _ in kinds.most_common(3))


def bits_cell(tally):
    errors, total = errors_in(tally), sum(tally.values())
    parts = [f"{sum(errors.values())} errors ({kinds_of(errors)})"] if errors else []
    parts += [f"{tally[what]} {words}" for what, words in (("wrong", "**wrong data**"), ("old", "correct"))
              if tally.get(what)]
    return f"of {total}: " + ", ".join(parts)


def kills_cell(tally, refusal):
    errors, total = errors_in(tally), sum(tally.values())
    parts = [f"{tally[what]} {words}" for what, words in (
        ("old", "old"), ("new", "new"), ("mixed", "**old and new mixed**"), ("wrong", "**neither**")) if tally.get(what)]
    parts += [f"{sum(errors.values())} **unloadable** ({kinds_of(errors)})"] if errors else []
    said = "" if refusal is None else f"; same path: `{refusal.partition(':')[0]}`"
    return f"of {total}: " + ", ".join(parts) + said


def mesh_cell(text):
    return "correct" if text == "old" else f"**{text}**" if text in STATES else f"`{text.partition(':')[0]}`"


def table(rows):
    lines = ["| | bit flip in a tensor | bit flip elsewhere | killed while overwriting | saved by 2 ranks, loaded by 3 |",
             "|---|---|---|---|---|"]
    for row in rows:
        cells = [row["version"] if row["version"].startswith(row["title"]) else f"{row['title']} ({row['version']})",
                 bits_cell(row["bits"]["tensors"]), bits_cell(row["bits"]["metadata"]),
                 kills_cell(row["kills"], row["refusal"]), mesh_cell(row["mesh"])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def faults_of(row):
    """What is wrong with the row of this library."""
    faults = [f"a flipped bit of a tensor gave {what}" for what in row["bits"]["tensors"] if not what.startswith("CorruptError")]
    faults += [f"a flipped bit of something else was loaded {what}" for what in row["bits"]["metadata"]
               if what in ("new", "mixed", "wrong")]
    faults += [f"a killed save left {what}" for what in row["kills"] if what not in ("old", "new")]
    faults += [f"the same path gave {row['refusal']}"] if not str(row["refusal"]).startswith("AlreadyExistsError") else []
    faults += [f"on another mesh: {row['mesh']}"] if row["mesh"] != "old" else []
    return faults


def row_of(name, options):
    """None, if it cannot be tried; then it is said why."""
    folders = [next(iter(sorted(BUILD.glob(pattern), reverse=True)), None) for pattern in CONTENDERS[name].packages]
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), *map(str, filter(None, folders)), str(ROOT / "tests/python")])
    command = [sys.executable, "-W", "ignore", __file__, "--one", name]
    for option in ("flips", "kills", "mib", "folder"):
        command += [f"--{option}", str(getattr(options, option))]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"},
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{name} is absent: {(done.stderr.strip() or f'it ended with {done.returncode}').splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(CONTENDERS), help="names with commas between them (default: %(default)s)")
    parser.add_argument("--flips", type=int, default=64, help="bits of each kind (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=16, help="saves that are killed (default: %(default)s)")
    parser.add_argument("--mib", type=int, default=64, help="size of what these save (default: %(default)s)")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where checkpoints are written (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, with the texts of all errors")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        try_one(options.one, options)
        return 0
    names = options.only.split(",")
    for name in names:
        if name not in CONTENDERS:
            print(f"--only has {name!r}, expected some of {', '.join(CONTENDERS)}", file=sys.stderr)
            return 64
    rows = [row for name in names if (row := row_of(name, options)) is not None]
    print(json.dumps(rows, indent=1) if options.json else table(rows))
    faults = [fault for row in rows if row["name"] == OURS for fault in faults_of(row)]
    if OURS in names and not any(row["name"] == OURS for row in rows):
        faults.append("it could not be tried")
    for fault in faults:
        print(f"{OURS}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
