# SPDX-License-Identifier: Apache-2.0
"""One rank does something else than the others: run by test_torch_mistakes.py.

Behind each mistake all ranks save together, which must succeed.
"""

import contextlib
import functools
import os
import signal
import socket
import threading
import time
import traceback

import ranks
import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist
from sealpoint.torch import _rendezvous
from sealpoint.torch._communicator import TorchCommunicator

DEADLINE_SECONDS = 2.5  # of a call that other ranks do not make
QUICK_SECONDS = 2.2  # of one that they do
HELD_DEADLINE_SECONDS = 0.7
GONE = sealpoint.TimeoutError, sealpoint.CommError


def state_of(**more):
    return {"t": torch.ones(4), "n": 1, **more}


class Stateful:
    """What fails when it is asked, or told."""

    def __init__(self, on_save=None, on_load=None):
        self.on_save, self.on_load = on_save, on_load

    def state_dict(self):
        if self.on_save is not None:
            raise self.on_save
        return {"v": 1}

    def load_state_dict(self, state):
        if self.on_load is not None:
            raise self.on_load


def outcome(call):
    try:
        call()
    except BaseException as error:
        return error
    return None


def is_waited_for(job, path):
    """A save of all ranks goes well, and soon."""
    began = time.monotonic()
    sp.save(state_of(), path, deadline=20)
    assert time.monotonic() - began < 10, "groups were not made at once"
    if job.rank == 0:
        assert sealpoint.verify(path).ok


def table(case):
    """A case of many mistakes: those that go wrong are told together."""

    @functools.wraps(case)
    def call(job):
        job.failed = []
        case(job)
        assert not job.failed, "\n".join(job.failed)

    return call


def check(job, name, right, wrong, expected, *words, wrong_rank=1, own=None, seconds=QUICK_SECONDS):
    """right() on all ranks but one, which does wrong(). All have the same error, or that rank has ``own``."""
    place = job.path(name.replace(" ", "-"))
    place.mkdir(exist_ok=True)
    dist.barrier()
    began = time.monotonic()
    error = outcome(lambda: (wrong if job.rank == wrong_rank else right)(place))
    passed = time.monotonic() - began
    texts = [None] * job.size
    dist.all_gather_object(texts, f"{type(error).__name__}: {error}")
    is_own = job.rank == wrong_rank and own is not None
    found = [
        "another kind of error" if not isinstance(error, own if is_own else expected) else "",
        "a word lacks" if not is_own and not all(word in str(error) for word in words) else "",
        "errors differ" if own is None and len(set(texts)) != 1 else "",
        "slow" if passed > seconds else "",
    ]
    if any(found):
        job.failed.append(f"{name}: {found}, {passed:.1f} s, expected {words}, {texts}")
    is_waited_for(job, place / "after")


def save(**arguments):
    return lambda place: sp.save(state_of(), **{"path": place / "c", "deadline": DEADLINE_SECONDS, "step": 1, **arguments})


def load(state=None, **arguments):
    return lambda place: sp.load(state_of() if state is None else state,
                                 **{"path": place.parent / "good", "deadline": DEADLINE_SECONDS, **arguments})


@table
def case_a_wrong_argument_of_a_save(job):
    mistakes = {
        "step": ["x", -1, 1.5, True, 2**64],
        "path": [None, 3, "", "a\0b"],
        "provenance": [{"m": [1.5]}, "x", {"m": "\udc00"}],
        "parent": [5, ("x", 1), ("a" * 32, -1)],
        "codec": ["lz4", None],
        "codec_level": ["x"],
        "chunk_size_bytes": [3, "x"],
        "compare_replicas": ["yes"],
        "allow_pickle": [1],
        "allow_empty": [None],
        "allow_fallback": [None],
        "writer_ranks": [3, ["x"]],
        "deadline": [-1, "x", float("nan"), 0, float("inf"), 10**400],
        "memory_budget_bytes": [-1, 1 << 20],
        "series": ["no"],
    }
    for name, values in mistakes.items():
        for number, value in enumerate(values):
            words = ["chunk"] if value == 3 and name == "chunk_size_bytes" else [name, "expected"]
            check(job, f"{name}-{number}", save(), save(**{name: value}), sealpoint.InvalidArgumentError, *words)
    check(job, "url", save(), save(path="odd2://b/x"), sealpoint.UnsupportedError, "path is a URL of odd2", "rank 1")
    check(job, "misspelt", save(), save(stepp=4), sealpoint.InvalidArgumentError, "stepp", "save()")
    check(job, "lacking", save(), lambda place: sp.save(), sealpoint.InvalidArgumentError, "state_dict", "save()")
    check(job, "of-rank-0", save(), save(step="x"), sealpoint.InvalidArgumentError, "step is 'x'", "rank 0", wrong_rank=0)
    check(job, "in-background", lambda place: sp.save_async(state_of(), place / "c"),
          lambda place: sp.save_async(state_of(), place / "c", background_deadline="x"),
          sealpoint.InvalidArgumentError, "background_deadline is 'x'", "rank 1")


@table
def case_a_wrong_argument_of_a_load(job):
    sp.save(state_of(), job.path("good"))
    mistakes = {"convert": ["exakt"], "contract": ["partial"], "threads": [0, 2000], "share_chunks": ["x"],
                "progress": [3], "path": [None], "allow_pickle": ["x"], "deadline": [-2]}
    for name, value in ((name, value) for name, values in mistakes.items() for value in values):
        check(job, f"{name}-{value}", load(), load(**{name: value}), sealpoint.InvalidArgumentError, f"{name} is ",
              "expected")
    check(job, "misspelt", load(), load(contrakt=None), sealpoint.InvalidArgumentError, "contrakt", "load()")
    check(job, "another kind", load(), load([torch.ones(4)]), sealpoint.MismatchError, "of another kind: the state itself")


@table
def case_arguments_differ(job):
    sp.save(state_of(), job.path("good"))
    for name, right, wrong in (
        ("step", 1, 2), ("step", None, 2), ("compare_replicas", True, False), ("deadline", 2.0, 3.0),
        ("writer_ranks", [], [0]), ("writer_ranks", [0, 1], [0, 5]), ("series", False, True), ("allow_empty", False, True),
        ("allow_fallback", False, True),
    ):
        check(job, f"{name}-{right}", save(**{name: right}), save(**{name: wrong}), sealpoint.InvalidArgumentError, "rank 1")
    check(job, "path", save(), lambda place: save(path=place / "d")(place), sealpoint.InvalidArgumentError,
          "different calls", "path/d'", "rank 1")
    for name, right, wrong in (
        ("contract", None, sp.Contract.partial()), ("convert", None, "exact"), ("share_chunks", True, False),
        ("deadline", 2.0, None),
    ):
        check(job, f"load-{name}", load(**{name: right}), load(**{name: wrong}), sealpoint.InvalidArgumentError,
              f": {name} is ", "rank 1")


@table
def case_a_wrong_argument_of_a_loop(job):
    """Functions of Checkpointer end on this rank, or leave out a save, and the others hear of it."""
    def step(number):
        def call(place):
            with sp.Checkpointer(place / "run", deadline=DEADLINE_SECONDS) as checkpoints:
                checkpoints.step(number, state_of())
        return call

    for number in ("x", 1.5, True):
        check(job, f"step-{number}", step(1), step(number), sealpoint.InvalidArgumentError, f"step is {number!r}", "rank 1")
    check(job, "step-None", step(1), step(None), sealpoint.InvalidArgumentError, "different calls", "rank 1")
    check(job, "every", step(1), lambda place: sp.Checkpointer(place / "run").save(2, state_of()),
          sealpoint.InvalidArgumentError, "different calls", "rank 1")

    def resume(required):
        return lambda place: sp.Checkpointer(place / "run").resume(state_of(), required=required)

    check(job, "required", resume(False), resume(True), sealpoint.InvalidArgumentError, ": required is ", "rank 1")


@table
def case_states_differ(job):
    for name, right, wrong in (
        ("shape", torch.ones(4), torch.ones(5)), ("dtype", torch.ones(4), torch.ones(4, dtype=torch.int32)),
        ("kind", torch.ones(4), 4), ("bytes", torch.ones(4), torch.zeros(4)), ("value", 1, 2),
        ("sign", 0.0, -0.0), ("bool", 1, True), ("float", 2, 2.0), ("nested", [(1, 0.0)], [(True, -0.0)]),
        ("key-of-bool", {1: "a"}, {True: "b"}), ("key-of-sign", {0.0: 1}, {-0.0: 1}),
        ("key-of-big", {10**16: 1}, {1e16: 1}), ("key-of-tuple", {(1, "a"): 1}, {(True, "a"): 1}),
        ("type", 1, lambda: 0), ("raises", 1, Stateful(on_save=ValueError("no state"))),
        ("memory", 1, Stateful(on_save=MemoryError())),
    ):
        check(job, f"save-{name}", lambda place, right=right: sp.save({"x": right}, place / "c"),
              lambda place, wrong=wrong: sp.save({"x": wrong}, place / "c"), sealpoint.Error,
              {"raises": "ValueError: no state", "memory": "MemoryError"}.get(name, "x"), "rank 1")
        sp.save({"x": torch.ones(4) if torch.is_tensor(right) else {"v": 1}}, job.path(f"good-{name}"))
    for name, right, wrong in (
        ("shape", torch.ones(4), torch.ones(5)), ("dtype", torch.ones(4), torch.ones(4, dtype=torch.int32)),
        ("kind", torch.ones(4), 4), ("raises", Stateful(), Stateful(on_load=RuntimeError("not mine"))),
    ):
        path = job.path(f"good-{name}")
        check(job, f"load-{name}", lambda place, path=path, right=right: sp.load({"x": right}, path),
              lambda place, path=path, wrong=wrong: sp.load({"x": wrong}, path), sealpoint.Error, "rank 1")
    check(job, "load-more", lambda place: sp.load({"x": torch.ones(4)}, job.path("good-shape")),
          lambda place: sp.load({"x": torch.ones(4), "y": 1}, job.path("good-shape")), sealpoint.MismatchError, "y")


@table
def case_calls_differ(job):
    sp.save(state_of(), job.path("good"))

    def in_background(place):
        return sp.save_async(state_of(), place / "c", step=1).result(20)

    def newest(place):
        return sp.Checkpointer(place).newest()

    calls = {"save": save(), "save_async": in_background, "load": load(), "newest": newest}
    pairs = [(call, other) for call in calls for other in calls if call < other]
    for pair, other in pairs:
        check(job, f"{pair}-{other}", calls[pair], calls[other], sealpoint.InvalidArgumentError, "different calls",
              pair, other, "rank 0", "rank 1")


@table
def case_a_call_is_left_by_another_exception(job):
    """Of which the others hear; its own rank has it as it is."""
    sp.save({"x": {"v": 1}}, job.path("good"))
    for error in (KeyboardInterrupt("pressed"), SystemExit(3), GeneratorExit()):
        name = type(error).__name__
        check(job, f"save-{name}", lambda place: sp.save({"x": 1}, place / "c", step=7),
              lambda place, error=error: sp.save({"x": Stateful(on_save=error)}, place / "c", step=7),
              sealpoint.CommError, "rank 1 left save of step 7", name, own=type(error))
        check(job, f"load-{name}", lambda place: sp.load({"x": Stateful()}, job.path("good")),
              lambda place, error=error: sp.load({"x": Stateful(on_load=error)}, job.path("good")),
              sealpoint.CommError, "rank 1 left load", name, own=type(error))

    check(job, "of one rank alone", lambda place: None,
          lambda place: sp.save({"x": Stateful(on_save=SystemExit(3))}, place / "c"), type(None), own=SystemExit)

    def progress(*_):
        raise RuntimeError("of the callback")

    check(job, "callback", lambda place: sp.load({"x": Stateful()}, job.path("good")),
          lambda place: sp.load({"x": Stateful()}, job.path("good"), progress=progress), sealpoint.Error, "callback",
          own=RuntimeError)


def interrupted_after(seconds, call):
    """Ctrl-C, some time after the call began."""
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        call()
    finally:
        timer.join()


@table
def case_a_rank_is_interrupted_while_it_waits(job):
    sp.save(state_of(), job.path("good"))
    for name, call in (("save", save(deadline=30)), ("load", load(deadline=30)), ("new groups", save(deadline=30))):
        if name == "new groups":  # they are broken on both
            outcome(lambda: sp.save({"x": Stateful(on_save=SystemExit())}, job.path("broken")))

        def late(place, call=call):
            time.sleep(1.2)
            call(place)

        check(job, f"late-{name}", lambda place, call=call: interrupted_after(0.4, lambda: call(place)), late,
              KeyboardInterrupt, own=sealpoint.CommError, seconds=3.5)
    check(job, "others-never-come", lambda place: interrupted_after(0.4, lambda: save(deadline=30)(place)),
          lambda place: time.sleep(1), KeyboardInterrupt, own=type(None), seconds=3.5)


@table
def case_a_call_is_missing(job):
    """The other rank waits for its deadline; what it waited for is told."""
    sp.save(state_of(), job.path("good"))
    limit = DEADLINE_SECONDS + 2
    check(job, "no save", save(step=5), lambda place: None, GONE, "save of step 5", "no-save/c", own=type(None),
          seconds=limit)
    check(job, "no load", load(), lambda place: None, GONE, "load", "good", own=type(None), seconds=limit)
    check(job, "save alone", save(), save(no_dist=True), GONE, "save of step 1", own=type(None), seconds=limit)
    check(job, "no group", save(), save(process_group="x"), GONE, own=sealpoint.InvalidArgumentError, seconds=limit)
    outcome(lambda: sp.save({"x": Stateful(on_save=SystemExit())}, job.path("broken")))
    check(job, "no groups", save(), lambda place: None, sealpoint.TimeoutError, "rank 1 of 2 did not arrive", "save of step 1",
          own=type(None), seconds=limit)


@table
def case_a_rank_comes_too_late(job):
    """And learns so at once, instead of waiting for its own deadline; then all go on."""
    def late(place):
        time.sleep(DEADLINE_SECONDS + 0.5)
        began = time.monotonic()
        try:
            save()(place)
        finally:
            assert time.monotonic() - began < QUICK_SECONDS

    check(job, "late", save(), late, GONE, "save of step 1", own=sealpoint.CommError, seconds=2 * DEADLINE_SECONDS + 2)


def held_at(number, call):
    """call(), whose exchange of that number this rank comes to only when the others have given it up."""
    real, left = TorchCommunicator._do, [number]

    def do(self, exchange):
        left[0] -= 1
        if left[0] == 0:
            time.sleep(HELD_DEADLINE_SECONDS + 0.4)
        return real(self, exchange)

    TorchCommunicator._do = do
    try:
        call()
    finally:
        TorchCommunicator._do = real


@table
def case_a_time_out_names_the_call_the_phase_and_the_ranks(job):
    """Each once, whether Python exchanged, or the library below it."""
    sp.save(state_of(), job.path("good"))
    in_background = functools.partial(sp.save_async, state_of(), step=1, deadline=HELD_DEADLINE_SECONDS)
    calls = {
        "save": ("save of step 1", lambda place: save(deadline=HELD_DEADLINE_SECONDS)(place)),
        "load": ("load", lambda place: load(deadline=HELD_DEADLINE_SECONDS)(place)),
        "save_async": ("save_async of step 1", lambda place: in_background(place / "c").result(20)),
    }
    for kind, number, words in (
        ("save", 1, ["save of step 1 '", "/c', while the ranks compared what they save: "]),
        ("save", 2, ["save of step 1 to ", "/c, phase preflight: "]),
        ("load", 1, ["load '", "/good', while the ranks began the load: "]),
        ("load", 2, ["collective opening of ", "/good: "]),
        ("save_async", 1, ["save_async of step 1 '", "/c', while the ranks compared what they save: "]),
        ("save_async", 2, ["save of step 1 to ", "/c, phase plan: "]),
    ):
        name = f"{kind}-{number}"
        place = job.path(name)
        place.mkdir(exist_ok=True)
        dist.barrier()
        call = functools.partial(calls[kind][1], place)
        error = outcome((lambda number=number, call=call: held_at(number, call)) if job.rank == 1 else call)
        text = str(error)
        path = str(job.path("good") if kind == "load" else place / "c")
        if job.rank == 0:
            wrong = [word for word in [*words, "rank 1 of 2 did not arrive within"] if text.count(word) != 1]
            if wrong or text.count(path) != 1 or not isinstance(error, sealpoint.TimeoutError):
                job.failed.append(f"{name}: {wrong}, {text!r}")
        elif text.count(path) != 1 or not isinstance(error, GONE):
            job.failed.append(f"{name}, late: {text!r}")
        is_waited_for(job, place / "after")


@table
def case_groups_for_the_background_name_who_did_not_come(job):
    real = TorchCommunicator.duplicate_for_background

    def late(self):
        time.sleep(HELD_DEADLINE_SECONDS + 0.5)
        return real(self)

    if job.rank == 1:
        TorchCommunicator.duplicate_for_background = late
    error = outcome(lambda: sp.save_async(state_of(n=2), job.path("c"), step=1, deadline=HELD_DEADLINE_SECONDS).result(20))
    TorchCommunicator.duplicate_for_background = real
    expected = "save of step 1 to ", "rank 1 of 2 did not arrive to connect"
    if job.rank == 0 and not all(text in str(error) for text in expected):
        job.failed.append(str(error))
    is_waited_for(job, job.path("after"))


def alone_who_did_not_come_is_told_by_who_waits(folder):
    """A rank that is ahead, or waits for another one itself, is none of them."""
    store = dist.HashStore()
    _rendezvous.own_store = lambda: store
    ranks_of = [_rendezvous.WaitReports("g/", rank, 4) for rank in range(4)]

    def told(rank, number, is_over=False):
        (ranks_of[rank].tell_end if is_over else ranks_of[rank].tell)(number)
        assert ranks_of[rank]._writing.wait(5)

    told(1, 3)
    assert ranks_of[0].absent(3) == [2, 3]
    told(1, 3, is_over=True)
    assert ranks_of[0].absent(3) == [2, 3], "it passed this one"
    assert ranks_of[0].absent(4) == [1, 2, 3]
    told(1, 5)
    told(2, 4)
    assert ranks_of[1].absent(5) == [0, 3], "rank 2 waits itself"
    assert ranks_of[0].text_of_absent(4) == "rank 3 of 4"

    def gone():
        raise RuntimeError("the host of the store is gone")

    _rendezvous.own_store = gone
    assert ranks_of[0].text_of_absent(4) == "a rank"


# Jobs of two ranks of which one is not there any more. Each ends by itself, or is ended here.


def run_job(folder, scenario, store):
    """Two processes, of which one is to end as the scenario expects."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        init = f"tcp://127.0.0.1:{free.getsockname()[1]}" if store == "tcp" else f"file://{folder}/rendezvous"
    return [ranks.fork(lambda rank=rank: run_scenario(scenario, folder, init, rank)) for rank in range(2)]


def run_scenario(scenario, folder, init, rank):
    dist.init_process_group("gloo", init_method=init, rank=rank, world_size=2)
    try:
        scenario(folder, rank)
    except BaseException:
        (folder / "failed").write_text(traceback.format_exc())
    os._exit((folder / "failed").exists())  # the other rank may be gone


def expect_named_error(folder, kinds, *words, name="next"):
    """Of a save for which a rank does not come, within its deadline."""
    began = time.monotonic()
    error = outcome(lambda: sp.save(state_of(), folder / name, step=9, deadline=DEADLINE_SECONDS))
    passed = time.monotonic() - began
    assert isinstance(error, kinds), error
    assert passed < DEADLINE_SECONDS + 3, f"{passed:.1f} s: {error}"
    assert all(word in str(error) for word in ("save of step 9", *words)), error


def absent_from_the_first_call(folder, rank):
    if rank == 1:
        time.sleep(15)
        os._exit(0)
    expect_named_error(folder, sealpoint.TimeoutError, "rank 1 of 2 did not arrive")
    expect_named_error(folder, sealpoint.TimeoutError, "rank 1 of 2 did not arrive", name="again")


def ends_behind_a_save(folder, rank, end=lambda: os._exit(0)):
    sp.save(state_of(), folder / "first")
    dist.barrier()
    if rank == 1:
        end()
    time.sleep(0.2)
    expect_named_error(folder, GONE)
    expect_named_error(folder, GONE, name="again")


def is_killed_behind_a_save(folder, rank):
    ends_behind_a_save(folder, rank, lambda: os.kill(os.getpid(), signal.SIGKILL))


def stops_behind_a_save(folder, rank):
    ends_behind_a_save(folder, rank, lambda: os.kill(os.getpid(), signal.SIGSTOP))


def the_host_of_the_store_stops(folder, rank, end=signal.SIGSTOP):
    sp.save(state_of(), folder / "first")
    dist.barrier()
    if rank == 0:
        os.kill(os.getpid(), end)
    time.sleep(0.2)
    expect_named_error(folder, GONE)
    began = time.monotonic()
    error = outcome(lambda: sp.save(state_of(), folder / "again", deadline=DEADLINE_SECONDS))
    assert isinstance(error, GONE), error
    assert time.monotonic() - began < DEADLINE_SECONDS + 4, error


def the_host_of_the_store_is_killed(folder, rank):
    the_host_of_the_store_stops(folder, rank, signal.SIGKILL)


def ctrl_c_at_the_first_call(folder, rank):
    if rank == 1:
        time.sleep(15)
        os._exit(0)
    began = time.monotonic()
    error = outcome(lambda: interrupted_after(0.5, lambda: sp.save(state_of(), folder / "c")))
    assert isinstance(error, KeyboardInterrupt), error
    assert time.monotonic() - began < 3


def alone_a_rank_is_gone(folder):
    scenarios = {
        absent_from_the_first_call: (0, "file"), ends_behind_a_save: (0, "tcp"), is_killed_behind_a_save: (0, "file"),
        stops_behind_a_save: (0, "tcp"), the_host_of_the_store_stops: (1, "tcp"),
        the_host_of_the_store_is_killed: (1, "tcp"), ctrl_c_at_the_first_call: (0, "tcp"),
    }
    running = {scenario: (judge, run_job(folder / scenario.__name__, scenario, store))
               for scenario, (judge, store) in scenarios.items()}
    failed = []
    for value, (judge, children) in running.items():
        _, status = os.waitpid(children[judge], 0)
        with contextlib.suppress(ProcessLookupError):
            os.kill(children[1 - judge], signal.SIGKILL)
        os.waitpid(children[1 - judge], 0)
        if status != 0:
            failed.append(f"{value.__name__}: {(folder / value.__name__ / 'failed').read_text()}")
    assert not failed, "\n".join(failed)
