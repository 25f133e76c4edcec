# SPDX-License-Identifier: Apache-2.0
"""Jobs of several ranks over gloo: starting processes costs seconds, so one job runs many cases, one after the other.

As a program it is one rank:  ranks.py MODULE RANK SIZE FOLDER
or, with "all" for the rank, all of them: it imports the module once and forks, if that takes long. What a module calls
alone_NAME runs then, each in a process without a group. What takes a second argument, ``at``, can run once more with its
checkpoints in an object store, by the environment variable SEALPOINT_PLACE: see ``remote_suite``.
"""

import contextlib
import ctypes
import datetime
import faulthandler
import gc
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import traceback

# Frameworks as scripts/python_env.sh unpacked them: a folder each, of their name and version. scripts/newest_frameworks.sh has
# others, one version of each, which stand for all that a test names.
NEWEST = os.environ.get("SEALPOINT_NEWEST_FRAMEWORKS")
PACKAGES = pathlib.Path(NEWEST or pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "."), "build/frameworks"))
LIMIT_SECONDS = 240
_PLACE = "SEALPOINT_PLACE"
_PR_SET_PDEATHSIG = 1  # a rank ends with the process that forked it
CASE_LIMIT_SECONDS = 60  # a rank that hangs for longer prints where, and ends


class Job:
    """One rank of a job, as cases see it. ``folder`` is the same on all ranks."""

    def __init__(self, rank, size, folder):
        self.rank, self.size, self.folder = rank, size, pathlib.Path(folder)
        self._joined = 0  # a file of a rendezvous serves once

    @property
    def is_remote(self):
        return _PLACE in os.environ

    def path(self, name):
        return self.folder / name

    def at(self, name):
        """Where a case has its checkpoints: below ``folder``, or in the object store of this job."""
        if not self.is_remote:
            return self.path(name)
        import store_paths

        return store_paths.RemotePath(f"{os.environ[_PLACE]}/{self.folder.name}/{name}")

    def run(self, case, *arguments):
        case(*arguments, *([self.at] if len(inspect.signature(case).parameters) == 2 else []))

    def raises(self, kind, call):
        """The error of call(), which must have one; the same text on all ranks."""
        import torch.distributed as dist

        try:
            call()
        except kind as error:
            texts = [None] * self.size
            dist.all_gather_object(texts, str(error))
            assert len(set(texts)) == 1, texts
            return error
        raise AssertionError(f"no {kind.__name__} on rank {self.rank}")

    def all_agree(self, value):
        """Of a value that is to be the same on all ranks."""
        import torch.distributed as dist

        values = [None] * self.size
        dist.all_gather_object(values, value)
        assert all(item == values[0] for item in values), values
        return value

    def slowest(self, seconds):
        """Of a time that each rank took."""
        import torch.distributed as dist

        values = [None] * self.size
        dist.all_gather_object(values, seconds)
        return max(values)

    def figure(self, text):
        """Says a line behind all cases, which ctest -V shows."""
        if self.rank == 0:
            with open(self.folder.parent / "figures.txt", "a") as file:
                file.write(text + "\n")

    def with_ranks(self, count, call):
        """Runs call() in a job of the first ranks alone, as one that goes on with fewer; the others wait.

        Groups of torch.distributed that were there before are gone.
        """
        import torch.distributed as dist

        dist.barrier()
        leave()
        self._joined += 1
        if self.rank < count:
            join(self.folder / f"few{self._joined}", self.rank, count)
            call()
            dist.barrier()
            leave()
        join(self.folder / f"all{self._joined}", self.rank, self.size)


def join(rendezvous, rank, size):
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=60))


def leave():
    """Before another group. DTensor keeps the results of its operations with their meshes, and finds them again for equal
    meshes of later groups: their collectives would then be those of the group that is gone."""
    import torch.distributed as dist
    from torch.distributed.tensor.debug import _clear_sharding_prop_cache

    dist.destroy_process_group()
    _clear_sharding_prop_cache()


def need_torch():
    """Skips a file of tests whose ranks need torch. Looks for it without importing it, which takes seconds."""
    import pytest

    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: see scripts/python_env.sh", allow_module_level=True)


def names_of(module, kind="case|alone", is_remote=None):
    """Of the cases, without importing what they need: all, or those that the environment variable SEALPOINT_CASES names,
    with commas between them. ``is_remote``: those that run in an object store."""
    chosen = os.environ.get("SEALPOINT_CASES")
    source = pathlib.Path(__file__).with_name(f"{module}.py").read_text()
    arguments = r"\(\w+, at\)" if (_PLACE in os.environ if is_remote is None else is_remote) else r"\("
    names = re.findall(rf"^def ((?:{kind})_\w+){arguments}", source, re.M)
    return [name for name in names if chosen is None or name in chosen.split(",")]


def cases_of(module, kind="case"):
    names = names_of(module, kind)
    return {name: function for name, function in vars(importlib.import_module(module)).items() if name in names}


def run_rank(module, rank, size, folder):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    join(f"{folder}/rendezvous", rank, size)
    with open(f"{folder}/rank{rank}.jsonl", "w", buffering=1) as log:
        for name, case in cases_of(module).items():
            run_case(log, name, lambda place, case=case: run_one(case, Job(rank, size, place)), folder)
    dist.destroy_process_group()


def run_one(case, job):
    import torch.distributed as dist

    job.run(case, job)
    dist.barrier()


def run_case(log, name, call, folder):
    place = pathlib.Path(folder, name)
    place.mkdir(exist_ok=True)
    faulthandler.dump_traceback_later(CASE_LIMIT_SECONDS, exit=True)
    began = time.monotonic()
    try:
        call(place)
    except BaseException:
        log.write(json.dumps([name, traceback.format_exc(), 0]) + "\n")
        os._exit(1)  # others wait for this rank until their deadline
    log.write(json.dumps([name, "", time.monotonic() - began]) + "\n")
    faulthandler.cancel_dump_traceback_later()


def run_all(module, size, folder):
    import torch

    torch.set_num_threads(1)
    importlib.import_module(module)
    gc.collect()
    gc.freeze()  # else each rank's first collection touches, and so copies, all that was imported
    children = [fork(lambda rank=rank: run_rank(module, rank, size, folder)) for rank in range(size)]
    failed = [child for child in children if os.waitpid(child, 0)[1]]
    with open(f"{folder}/alone.jsonl", "w", buffering=1) as log:
        for name, call in cases_of(module, "alone").items():
            def run(place, call=call):
                Job(0, 1, place).run(call, place)

            child = fork(lambda name=name, run=run: run_case(log, name, run, folder))
            failed += [child] if os.waitpid(child, 0)[1] else []
    sys.exit(bool(failed))


def fork(call):
    """A process that runs call(), and ends as any program, with what modules have to do at their ends."""
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        call()
        sys.exit()
    return child


class Running:
    """A job that was started. ``packages``: further folders of modules; ``fork``: see above; ``more``: environment."""

    def __init__(self, module, size, folder, packages=(), fork=False, more=None):
        self.module, self.size, self.folder = module, size, pathlib.Path(folder)
        self.is_remote = _PLACE in (more or {})
        path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), *map(str, packages)])
        environment = dict(os.environ, OMP_NUM_THREADS="1", LOCAL_WORLD_SIZE=str(size), PYTHONPATH=path, **(more or {}))
        command = [sys.executable, __file__, module]
        self.ranks = [subprocess.Popen([*command, str(rank), str(size), str(folder)], env=environment)
                      for rank in (["all"] if fork else range(size))]

    def _wait(self):
        failed = []
        for rank, process in enumerate(self.ranks):
            try:
                process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                failed.append(f"rank {rank} did not end")
                process.kill()
                process.wait()
            if process.returncode != 0:
                failed.append(f"rank {rank} ended with {process.returncode}")
        return failed

    def end(self):
        """Whether anybody asked for its outcomes or not."""
        for process in self.ranks:
            process.kill()
            process.wait()

    def outcomes(self):
        """Once it ended: {case: what went wrong, or ""}, and lines under "figures"."""
        failed, results = self._wait(), {}
        logs = [(f"rank{rank}", "case") for rank in range(self.size)]
        for log_name, kind in [*logs, ("alone", "alone")]:
            log = self.folder / f"{log_name}.jsonl"
            lines = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
            seen = {name: text for name, text, _ in lines}
            for name in names_of(self.module, kind, self.is_remote):
                text = seen.get(name, f"not run; {failed}")
                if text:
                    results[name] = results.get(name, "") + f"\n{log_name}: {text}"
                else:
                    results.setdefault(name, "")
        figures = self.folder / "figures.txt"
        results["figures"] = figures.read_text().splitlines() if figures.exists() else []
        results["end"] = "" if not failed else str(failed)
        return results


def run(module, size, folder, packages=(), fork=False, more=None):
    """Runs all cases of a module, in a job of its own."""
    return Running(module, size, folder, packages, fork, more).outcomes()


@contextlib.contextmanager
def place(is_remote, name):
    """What the environment of a job has for its place, with a server of S3 meanwhile; None: file systems."""
    if not is_remote:
        yield None
        return
    import pytest
    from object_stores import running, servers

    pytest.importorskip("obstore", reason="obstore is not installed: see scripts/python_env.sh")
    with running(servers.seaweedfs) as server:
        yield {**server.environment, _PLACE: f"s3://bucket/{name}"}


def folders_of(need):
    """Of a package: a name, of any version, or a name with its version."""
    name = re.sub(r"-\d[\w.]*$", "", need)
    return list(PACKAGES.glob(f"{name}-[0-9]*" if NEWEST or name == need else need))


def versions_of(name, pinned):
    return tuple(folder.name.removeprefix(f"{name}-") for folder in folders_of(name)) if NEWEST else pinned


@contextlib.contextmanager
def jobs_of(module, size, name, versions, make_folder, needs=(), more=None):
    """A job of all cases for each version of a framework that is there with what it ``needs`` (names, or name-version).

    They run together: one computes while the other waits for its ranks or for the disk.
    """
    others = [folders_of(need) for need in needs]
    folders = {version: PACKAGES / f"{name}-{version}" for version in versions}
    started = {version: Running(module, size, make_folder("job"), [folder, *sum(others, [])], fork=True, more=more)
               for version, folder in folders.items() if folder.is_dir() and all(others)}
    yield started
    for job in started.values():
        job.end()


def outcomes_of(jobs, name, version):
    """Of the job for this version, once it ended; the test is skipped if there is none."""
    import pytest

    if version not in jobs:
        pytest.skip(f"no {PACKAGES}/{name}-{version}: see scripts/python_env.sh")
    return jobs[version].outcomes()


def suite(module, size, name, versions, needs=()):
    """The fixtures ``jobs`` and ``outcomes`` and the test of each case, for a module that gives them these names."""
    import pytest

    versions = versions_of(name, versions)

    @pytest.fixture(scope="module")
    def jobs(tmp_path_factory):
        with jobs_of(module, size, name, versions, tmp_path_factory.mktemp, needs) as started:
            yield started

    @pytest.fixture(scope="module", params=versions)
    def outcomes(request, jobs):
        return outcomes_of(jobs, name, request.param)

    @pytest.mark.parametrize("case", [*names_of(module), "end"])
    def test(case, outcomes):
        assert not outcomes[case], f"\n{outcomes[case]}"

    return jobs, outcomes, test


def remote_suite(module, size, name, versions, needs=()):
    """The fixture ``remote_outcomes`` and the test of each case that takes ``at``, with a server of S3 for each version."""
    import pytest

    versions = versions_of(name, versions)

    @pytest.fixture(scope="module", params=versions)
    def remote_outcomes(request, tmp_path_factory):
        with place(True, module) as more:
            with jobs_of(module, size, name, [request.param], tmp_path_factory.mktemp, needs, more) as started:
                yield outcomes_of(started, name, request.param)

    @pytest.mark.parametrize("case", [*names_of(module, is_remote=True), "end"])
    def test_remote(case, remote_outcomes):
        assert not remote_outcomes[case], f"\n{remote_outcomes[case]}"

    return remote_outcomes, test_remote


if __name__ == "__main__":
    if sys.argv[2] == "all":
        run_all(sys.argv[1], int(sys.argv[3]), sys.argv[4])
    else:
        run_rank(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
