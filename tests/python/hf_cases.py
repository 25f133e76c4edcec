# SPDX-License-Identifier: Apache-2.0
"""The Trainer and accelerate of Hugging Face on three ranks, and in one process; run by test_huggingface.py."""

import contextlib
import json
import logging
import os
import pathlib
import re
from unittest import mock

import docstring_examples
import hf_shim
import object_stores
import torch
import torch._dynamo  # as optimizers do when they step: once, before ranks are forked
import torch.distributed as dist

import accelerate  # isort: skip
import safetensors.torch
import sealpoint
import sealpoint.torch as sp
import transformers
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, FullyShardedDataParallelPlugin
from sealpoint.accelerate import AcceleratorCheckpointer
from sealpoint.interop import _destination
from sealpoint.transformers import SealpointTrainer, export_pretrained
from torch_states import assert_same, whole
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, TrainingArguments

hf_shim.have_fsdp_on_cpus()
FSDP = {"fsdp": True, "fsdp_config": {"version": 2, "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]}}
GLOBAL_BATCH = 6


class Killed(Exception):
    pass


class Kill(transformers.TrainerCallback):
    """Ends the process, as it were, when so many steps are done; notes the loss of each."""

    def __init__(self, at=None):
        self.at, self.losses = at, {}

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.losses[state.global_step] = logs["loss"]

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.at:
            raise Killed


def make_model(seed, tied=True, **more):
    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(
        **{"vocab_size": 30, "hidden_size": 20, "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 2,
           "attention_dropout": 0.2, "max_position_embeddings": 16, "tie_word_embeddings": tied, **more}))


def samples(count=48):
    made = torch.Generator().manual_seed(3)
    rows = torch.randint(0, 30, (count, 8), generator=made)
    return [{"input_ids": row, "labels": row} for row in rows]


def trainer(folder, ranks, seed, *callbacks, steps=6, kind=SealpointTrainer, options=None, model=None, **more):
    arguments = TrainingArguments(**{
        "output_dir": str(folder), "max_steps": steps, "save_steps": 2, "logging_steps": 1, "learning_rate": 0.01,
        "per_device_train_batch_size": GLOBAL_BATCH // ranks, "report_to": [], "use_cpu": True, "disable_tqdm": True,
        "save_total_limit": 2, "seed": 5, **more})
    keywords = {} if options is None else {"checkpoint_options": options}
    return kind(model or make_model(seed), arguments, train_dataset=samples(), eval_dataset=samples(6),
                callbacks=list(callbacks), **keywords)


def state_of(one):
    """All that a checkpoint has, whole, by name."""
    model = dict(one.model.state_dict())
    for number, entries in one.optimizer.state_dict()["state"].items():
        model.update({f"{number}.{key}": value for key, value in entries.items()})
    return {name: whole(tensor.detach()) for name, tensor in model.items()}


def weights_of(model):
    return {name: whole(value.detach()) for name, value in model.state_dict().items()}


def kinds_of(size):
    return [{}, FSDP] if size > 1 else [{}]


def names_in(folder):
    return sorted(entry.name for entry in sealpoint.Series(folder).list() if entry.verdict == "committed")


def case_a_killed_training_goes_on_exactly(job):
    """With DDP and with FSDP2: steps 5 and 6 are those of a run that was not killed, bit for bit."""
    for number, kind in enumerate(kinds_of(job.size)):
        run = job.path(f"run{number}")
        with hf_shim.ranks_of(job.rank, job.size):
            heard = Kill()
            one = trainer(job.path(f"whole{number}"), job.size, 1, heard, **kind)
            one.train()
            expected = state_of(one)
        with hf_shim.ranks_of(job.rank, job.size), contextlib.suppress(Killed):
            killed = Kill(at=5)
            trainer(run, job.size, 1, killed, **kind).train()
            raise AssertionError("it was to be killed")
        with hf_shim.ranks_of(job.rank, job.size):
            resumed = Kill()
            other = trainer(run, job.size, 2, resumed, **kind)
            newest = job.all_agree(other.newest_checkpoint())
            assert "step-000000000004-" in newest, newest
            torch.rand(7 + job.rank)  # what is drawn before does not count
            other.train(resume_from_checkpoint=True)
            assert_same(expected, state_of(other))
            assert {**killed.losses, **resumed.losses} == heard.losses
            assert list(resumed.losses) == [5, 6]
            assert len(other.state.log_history) == len(one.state.log_history)
        assert [name[:17] for name in names_in(run)] == ["step-000000000004", "step-000000000006"]
        if job.rank == 0:
            assert all(sealpoint.verify(run / name).ok for name in names_in(run))
            (written,) = {len(sealpoint.open(run / name).blobs) for name in names_in(run)}
            assert written == job.size, "each rank writes"


def case_other_numbers_of_ranks_resume(job):
    """2 -> 1, 1 -> 3, 3 -> 2, across DDP and FSDP2: each has the state that was saved."""
    saved = {}

    def save(size, name, **kind):
        with hf_shim.ranks_of(job.rank, size):
            one = trainer(job.path(name), size, 1, steps=4, **kind)
            one.train()
            saved[name] = state_of(one)

    def resume(size, name, **kind):
        with hf_shim.ranks_of(job.rank, size), mock.patch.object(logging.getLogger("sealpoint"), "warning") as warned:
            heard = Kill(at=5)
            one = trainer(job.path(name), size, 2, heard, steps=5, **kind)
            seen = {}

            def look(*arguments):
                own(*arguments)
                seen.update(state_of(one))

            own, one._load_optimizer_and_scheduler = one._load_optimizer_and_scheduler, look
            with contextlib.suppress(Killed):
                one.train(resume_from_checkpoint=one.newest_checkpoint())
            assert one.state.global_step == 5 and one.lr_scheduler.last_epoch == 5
            assert_same({name: value.cpu() for name, value in seen.items()}, saved_by[name])
            said = [call.args[1] for call in warned.call_args_list]
            assert said == ["rng"], said
        return heard.losses

    def agreed(name):
        found = [None]
        found[0] = saved.get(name) if dist.get_rank() == 0 else None
        dist.broadcast_object_list(found)
        saved_by[name] = found[0]

    saved_by = {}
    job.with_ranks(2, lambda: save(2, "two", **FSDP))
    agreed("two")
    job.with_ranks(1, lambda: resume(1, "two"))
    job.with_ranks(1, lambda: save(1, "one"))
    agreed("one")
    for kind in kinds_of(3):
        resume(3, "one", **kind)
    save(3, "three")
    agreed("three")
    job.with_ranks(2, lambda: resume(2, "three", **FSDP))


def case_a_failed_save_is_heard(job):
    """By the next save, on all ranks, or by the end of the training; with on_error="warn" it is logged."""
    place = job.path("file")
    if job.rank == 0:
        place.write_text("")
    dist.barrier()
    options = {"directory": place / "run"}
    for steps, kind in ((6, {}), (2, FSDP)):
        with hf_shim.ranks_of(job.rank, job.size):
            one = trainer(job.path("out"), job.size, 1, steps=steps, options=options, **kind)
            job.raises(sealpoint.Error, one.train)
            assert one.state.global_step == min(steps, 4)
    with hf_shim.ranks_of(job.rank, job.size), mock.patch.object(logging.getLogger("sealpoint"), "warning") as warned:
        one = trainer(job.path("out"), job.size, 1, options={**options, "on_error": "warn"})
        one.train()
        assert one.state.global_step == 6
        said = [call.args[1] for call in warned.call_args_list]
        assert said == [f"the save of step {step}" for step in (2, 4, 6)], said


def case_one_rank_that_raises_is_an_error_of_all(job):
    class Broken:
        def state_dict(self):
            if job.rank == 1:
                raise ZeroDivisionError("of this rank")
            return {}

        def load_state_dict(self, state):
            pass

    with hf_shim.ranks_of(job.rank, job.size):
        one = trainer(job.path("run"), job.size, 1)
        own = one._state
        one._state = lambda: {**own(), "scheduler": Broken()}
        error = job.raises(sealpoint.Error, one.train)
        assert "ZeroDivisionError" in str(error) and error.rank == 1, error


class Graded(SealpointTrainer):
    """The best step is the fourth, or the one that `best` says."""

    best, worse = 4, 0.0

    def evaluate(self, *args, **kwargs):
        step = self.state.global_step
        metrics = {"eval_grade": self.worse + (0.1 if step == self.best else 0.2 + step / 100)}
        self.log(metrics)
        self.weights[step] = weights_of(self.model)
        return metrics


GRADED = {"eval_strategy": "steps", "eval_steps": 2, "metric_for_best_model": "grade", "greater_is_better": False,
          "load_best_model_at_end": True}


def case_the_best_model_stays_and_is_loaded(job):
    """Evaluated before each save; the best is older than what save_total_limit keeps."""
    for number, kind in enumerate(kinds_of(job.size)):
        run = job.path(f"run{number}")
        more = {**GRADED, **kind}
        with hf_shim.ranks_of(job.rank, job.size):
            one = trainer(run, job.size, 1, Kill(at=11), steps=12, kind=Graded, **more)
            one.weights = {}
            with contextlib.suppress(Killed):
                one.train()
            weights = one.weights
        with hf_shim.ranks_of(job.rank, job.size):
            other = trainer(run, job.size, 2, steps=12, kind=Graded, **more)
            other.weights = {}
            other.train(resume_from_checkpoint=True)
            assert other.state.best_global_step == 4 and other.state.best_metric == 0.1
            assert "step-000000000004-" in other.state.best_model_checkpoint
            assert_same(weights[4], weights_of(other.model))
            exported = export_of(job, other, f"best{number}")
            assert_same(weights[4], exported)
        first = names_in(run)
        assert [name[:17] for name in first] == [f"step-{step:012}" for step in (4, 10, 12)]
        dist.barrier()
        with hf_shim.ranks_of(job.rank, job.size):  # another training, whose best is worse than that of the first one
            third = trainer(run, job.size, 3, steps=12, kind=Graded, **more)
            third.weights, third.worse = {}, 1.0
            third.train()
            assert third.state.best_metric == 1.1
            assert_same(third.weights[4], weights_of(third.model))
        assert [name[:17] for name in names_in(run) if name not in first] == [f"step-{step:012}" for step in (4, 10, 12)]


def export_of(job, one, name):
    """The weights of what a Trainer exports."""
    one.export_pretrained(job.path(name))
    dist.barrier()
    return dict(AutoModelForCausalLM.from_pretrained(job.path(name)).state_dict())


def case_the_best_model_is_the_last_one_of_staged_saves(job):
    """It is in the final place when it is loaded and exported, however slow its promotion is."""
    options = {"staged": str(job.path(f"local{job.rank}"))}
    with hf_shim.ranks_of(job.rank, job.size):
        one = trainer(job.path("run"), job.size, 1, steps=6, kind=Graded, options=options, **GRADED)
        one.weights, one.best = {}, 6
        one.train()
        assert "step-000000000006-" in one.state.best_model_checkpoint
        assert sealpoint.verify(one.state.best_model_checkpoint).ok
        assert_same(one.weights[6], export_of(job, one, "best"))


def case_an_export_is_of_the_last_step_or_an_error(job):
    """A save that fails is logged, and the one before it is not taken for it."""
    with hf_shim.ranks_of(job.rank, job.size):
        one = trainer(job.path("run"), job.size, 1, steps=4, options={"on_error": "warn"})
        one.train()
        one.state.global_step = 5  # the save of which failed
        with mock.patch.object(one._checkpoints, "save", lambda *given, **options: None):
            error = job.raises(sealpoint.UncommittedError, lambda: one.export_pretrained(job.path("none")))
        assert "step 5 has no checkpoint" in str(error), error
        assert_same(weights_of(one.model), export_of(job, one, "last"))


def case_folders_of_the_trainer_are_not_deleted(job):
    """Which its own end does with a limit of 1."""
    run = job.path("run")
    if job.rank == 0:
        (run / "checkpoint-2").mkdir(parents=True)
    dist.barrier()
    with hf_shim.ranks_of(job.rank, job.size):
        one = trainer(run, job.size, 1, steps=4, kind=Graded, **{**GRADED, "save_total_limit": 1})
        one.weights = {}
        one.train()
        assert one.args.save_total_limit == 1
    dist.barrier()
    assert (run / "checkpoint-2").is_dir()


def case_exports_are_loaded_by_from_pretrained(job):
    for number, (kind, tied) in enumerate([({}, True), (FSDP, False), (FSDP, True)]):
        folder = job.path(f"final{number}")
        with hf_shim.ranks_of(job.rank, job.size):
            one = trainer(job.path(f"run{number}"), job.size, 1, steps=3, model=make_model(1, tied), **kind)
            one.train()
            one.model.generation_config.max_new_tokens = 7
            assert one.export_pretrained(folder, max_shard_size="8KB") == str(folder)
            expected = weights_of(one.model)
            step_of_newest = sealpoint.Series(job.path(f"run{number}")).newest().entry.step
            assert step_of_newest == 3
            job.raises(sealpoint.AlreadyExistsError, lambda: one.export_pretrained(folder))
        dist.barrier()
        loaded = AutoModelForCausalLM.from_pretrained(folder)
        assert type(loaded) is LlamaForCausalLM and loaded.generation_config.max_new_tokens == 7
        assert_same(expected, dict(loaded.state_dict()))
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        assert ("lm_head.weight" in index["weight_map"]) == (not tied), "what is tied is written once"
        files = sorted(set(index["weight_map"].values()))
        assert len(files) > 2 and all((folder / name).stat().st_size < 20_000 for name in files)
        assert index["metadata"]["total_size"] == sum(
            tensor.nbytes for name in files for tensor in safetensors.torch.load_file(folder / name).values())
        dist.barrier()


def case_an_accelerator_goes_on(job):
    """Models, optimizers, schedulers, registered objects, places in data; 3 ranks, then 2, then 1."""

    class Counter:
        def __init__(self):
            self.seen = 0

        def state_dict(self):
            return {"seen": self.seen}

        def load_state_dict(self, state):
            self.seen = state["seen"]

    def loop(size, kind, seed, steps, path, stop=None, **options):
        with hf_shim.ranks_of(job.rank, size):
            plugin = FullyShardedDataParallelPlugin(fsdp_version=2) if kind == "fsdp" else None
            order = DataLoaderConfiguration(use_seedable_sampler=True, data_seed=3)
            of = Accelerator(cpu=True, fsdp_plugin=plugin, dataloader_config=order)
            model = make_model(seed)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
            data = torch.utils.data.DataLoader(samples(), batch_size=GLOBAL_BATCH // size, shuffle=True)
            model, optimizer, data, scheduler = of.prepare(model, optimizer, data, scheduler)
            counter, more = Counter(), {"epoch": 0}
            of.register_for_checkpointing(counter)
            losses = {}
            with AcceleratorCheckpointer(of, path, keep=2, **options) as checkpoints:
                first = (checkpoints.resume(more) or 0) + 1
                begun = weights_of(of.unwrap_model(model))
                for step in range(first, steps + 1):
                    data.set_epoch(step)
                    batch = next(iter(data))
                    loss = model(**batch).loss
                    of.backward(loss)
                    optimizer.step()
                    scheduler.step()
                    optimizer.zero_grad()
                    counter.seen += 1
                    more["epoch"] = step // 2
                    losses[step] = loss.item()
                    checkpoints.step(step, more)
                assert counter.seen == steps and more["epoch"] == steps // 2
                rate = optimizer.param_groups[0]["lr"]
            found = weights_of(of.unwrap_model(model))
            return losses, begun, found, rate

    for kind in ("ddp", "fsdp"):
        expected, _, last, rate = loop(job.size, kind, 1, 5, job.path(f"whole-{kind}"))
        _, _, third, _ = loop(job.size, kind, 1, 3, job.path(kind))
        resumed, begun, found, resumed_rate = loop(job.size, kind, 2, 5, job.path(kind))
        assert_same(third, begun)
        if kind == "fsdp":
            assert resumed == {step: expected[step] for step in (4, 5)}
            assert_same(last, found)
        else:  # DDP makes its buckets anew after its first step, and sums gradients in another order from then on
            assert all(abs(resumed[step] - expected[step]) < 1e-5 for step in (4, 5))
            assert all(torch.allclose(found[name], last[name], atol=1e-6) for name in last)
        assert rate == resumed_rate
        newest = sp.load_full(sealpoint.Series(job.path(kind)).newest().entry.path)
        assert newest["objects"] == [{"seen": 5}] and newest["more"] == {"epoch": 2} and len(newest["rng"]) == job.size

        def on_fewer(kind=kind, saved=found):
            _, begun, _, _ = loop(2, "fsdp" if kind == "ddp" else "ddp", 3, 6, job.path(kind))
            assert_same(saved, begun)

        job.with_ranks(2, on_fewer)
        folder = job.path(f"final-{kind}")
        path = sealpoint.Series(job.path(kind)).newest().entry.path
        with hf_shim.ranks_of(job.rank, job.size):
            export_pretrained(make_model(9), path, folder, part="models.0")
        dist.barrier()
        stored = sp.load_full(path)["models"][0]
        assert_same(stored, dict(AutoModelForCausalLM.from_pretrained(folder).state_dict()))
        dist.barrier()


def alone_checkpoints_of_the_trainer_itself_are_resumed(place):
    """And those of this library follow; the Trainer's stay."""
    run = place / "run"
    with hf_shim.ranks_of(0, 1):
        whole_run = trainer(place / "whole", 1, 1)
        whole_run.train()
        expected = state_of(whole_run)
    with hf_shim.ranks_of(0, 1), contextlib.suppress(Killed):
        trainer(run, 1, 1, Kill(at=5), kind=transformers.Trainer).train()
    with hf_shim.ranks_of(0, 1):
        one = trainer(run, 1, 2)
        newest = one.newest_checkpoint()
        assert newest == str(run / "checkpoint-4")
        one.train(resume_from_checkpoint=newest)
        assert_same(expected, state_of(one))
        assert (run / "checkpoint-4").is_dir() and [name[:17] for name in names_in(run)] == ["step-000000000006"]


def alone_the_best_model_at_a_url_is_known_after_a_resume(place):
    with hf_shim.ranks_of(0, 1):
        options = {"directory": str(object_stores.new_place() / "run")}
        one = trainer(place, 1, 1, steps=8, kind=Graded, options=options, **GRADED)
        one.weights = {}
        one.train()
        other = trainer(place, 1, 2, steps=10, kind=Graded, options=options, **GRADED)
        other.weights, other.best = {}, None
        other.train(resume_from_checkpoint=True)
        assert other.state.best_global_step == 4
        assert_same(one.weights[4], weights_of(other.model))


def alone_what_cannot_be_resumed(place):
    with hf_shim.ranks_of(0, 1):
        one = trainer(place / "run", 1, 1, steps=2, save_only_model=True)
        error = raised(sealpoint.NotFoundError, lambda: one.train(resume_from_checkpoint=True))
        assert "no checkpoint was ever committed" in str(error)
        one.train()
        newest = one.newest_checkpoint()
        assert set(sp.load_full(newest)) == {"model", "trainer"}
        other = trainer(place / "run", 1, 1, steps=4)
        error = raised(sealpoint.MismatchError, lambda: other.train(resume_from_checkpoint=newest))
        assert "optimizer" in str(error)
        sp.save({"model": one.model}, place / "plain")
        error = raised(sealpoint.NotFoundError, lambda: other.train(resume_from_checkpoint=place / "plain"))
        assert "'trainer'" in str(error) and "model" in str(error)
        blob = next(pathlib.Path(newest).glob("*.blob"))
        os.truncate(blob, blob.stat().st_size // 2)
        raised(sealpoint.Error, lambda: other.train(resume_from_checkpoint=True))


def alone_settings_that_are_refused(place):
    with hf_shim.ranks_of(0, 1):
        for options, words in (({"every": 3}, "every"), ({"keep": 3}, "keep"), ({"codec": "lz4"}, "codec is 'lz4'"),
                               ({"codek": "zstd"}, "codek")):
            error = raised((sealpoint.InvalidArgumentError, TypeError), lambda options=options: trainer(
                place / "run", 1, 1, options=options))
            assert words in str(error), error
        one = trainer(place / "run", 1, 1)
        one.args.push_to_hub, one.args.hub_strategy = True, "every_save"
        assert "hub_strategy" in str(raised(sealpoint.UnsupportedError, one.train))
        one.args.push_to_hub = False
        one.accelerator.state.fsdp_plugin = mock.Mock(fsdp_version=1)
        assert "fsdp_version is 1" in str(raised(sealpoint.UnsupportedError, one.train))
        error = raised(sealpoint.UnsupportedError, lambda: AcceleratorCheckpointer(one.accelerator, place / "run"))
        assert "fsdp_version is 1" in str(error)
        del one.accelerator.state.fsdp_plugin
        one.accelerator.state.distributed_type = accelerate.utils.DistributedType.DEEPSPEED
        assert "DEEPSPEED" in str(raised(sealpoint.UnsupportedError, one.train))
        assert "expected an Accelerator" in str(raised(
            sealpoint.InvalidArgumentError, lambda: AcceleratorCheckpointer(3, place / "run")))


def alone_exports_are_whole_or_not_there(place):
    model, path, folder = make_model(1), place / "c", place / "final"
    sp.save({"model": model, "other": make_model(1).half()}, path)

    class Tokenizer:
        def save_pretrained(self, folder):
            assert (pathlib.Path(folder) / "config.json").exists()
            raise ZeroDivisionError

    raised(sealpoint.Error, lambda: export_pretrained(model, path, folder, processing_class=Tokenizer()))
    assert sorted(os.listdir(place)) == ["c"], "nothing is left"
    (place / "final.partial-0123abcd").mkdir()
    with mock.patch.object(_destination, "publish", wraps=_destination.publish) as publish:
        export_pretrained(model, path, folder)
    # Which makes all files durable (test_convert_formats.test_files_are_durable_before_they_have_their_name).
    assert sorted(os.listdir(place)) == ["c", "final"] and publish.call_args.args[1] == str(folder)
    half = export_pretrained(make_model(2).half(), path, place / "half", part="other")
    assert AutoModelForCausalLM.from_pretrained(half).dtype == torch.float16
    with torch.device("meta"):
        empty = make_model(3)
    again = export_pretrained(empty, path, place / "again")
    assert_same(dict(model.state_dict()), dict(AutoModelForCausalLM.from_pretrained(again).state_dict()))
    wrong = place / "wrong"
    for call, words in (
        (lambda: export_pretrained(make_model(1, vocab_size=31), path, wrong), "lm_head.weight"),
        (lambda: export_pretrained(model, path, wrong, part="modell"), "'modell', expected one of model, other"),
        (lambda: export_pretrained(torch.nn.Linear(2, 2), path, wrong), "expected a PreTrainedModel"),
        (lambda: export_pretrained(model, path, "s3://bucket/x"), "transformers writes files"),
    ):
        error = raised(sealpoint.Error, call)
        assert words in str(error), error
    assert not wrong.exists()


def alone_models_whose_names_differ_at_the_hub(place):
    """Experts are one tensor in memory, and each by itself in files: the export has the names of files."""
    torch.manual_seed(1)
    config = transformers.MixtralConfig(
        vocab_size=30, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, num_local_experts=2, max_position_embeddings=16)
    model = transformers.MixtralForCausalLM(config)
    sp.save({"model": model}, place / "c")
    folder = export_pretrained(model, place / "c", place / "final")
    written = set(safetensors.torch.load_file(f"{folder}/model.safetensors"))
    assert any("experts.0.w1" in name for name in written), sorted(written)
    assert_same(dict(model.state_dict()), dict(AutoModelForCausalLM.from_pretrained(folder).state_dict()))


def alone_the_page(place):
    """The code of docs/guides/huggingface.md, in two processes as it were: the second one goes on with each training."""
    page = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"], "docs/guides/huggingface.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    assert len(blocks) == 3
    os.chdir(place)
    for number in range(2):
        names = {}
        with hf_shim.ranks_of(0, 1):
            for block in blocks[: 2 if number else 3]:
                block = block.replace('"final"', f'"final{number}"').replace("max_steps=20", f"max_steps={20 + 5 * number}")
                exec(compile(block, "docs/guides/huggingface.md", "exec"), names)
        assert names["trainer"].state.global_step == 20 + 5 * number and names["step"] == 16
    assert len(names_in("run")) == 3 and len(names_in("accelerated")) == 3
    for folder in ("final0", "final1", "exported"):
        AutoModelForCausalLM.from_pretrained(folder)


def alone_docstrings(place):
    for module in (sealpoint.accelerate, sealpoint.transformers):
        with hf_shim.ranks_of(0, 1):
            docstring_examples.run(module, place)


def raised(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind}")


def case_a_second_job_of_the_trainer_is_told(job):
    """One that resumed while the first one ran on; a training may go back to an older checkpoint."""
    run = job.path("run")

    class Beside(transformers.TrainerCallback):
        def on_train_begin(self, args, state, control, **kwargs):
            if job.rank == 0:
                sealpoint.save({"n": b"1"}, run, series=True, step=7)
            dist.barrier()

    with hf_shim.ranks_of(job.rank, job.size):
        trainer(run, job.size, 1, steps=4).train()
    older = job.all_agree([entry.path for entry in sealpoint.Series(run).list() if entry.step == 2][0])
    with hf_shim.ranks_of(job.rank, job.size):
        trainer(run, job.size, 1, steps=6).train(resume_from_checkpoint=older)
    with hf_shim.ranks_of(job.rank, job.size):
        late = trainer(run, job.size, 1, Beside(), steps=8)
        error = job.raises(sealpoint.AlreadyExistsError, lambda: late.train(resume_from_checkpoint=True))
    assert "another job saved step 7" in str(error), error
