# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face Trainer that saves Sealpoint checkpoints, and exports for ``from_pretrained``.

    trainer = SealpointTrainer(model, args, train_dataset=data)
    trainer.train(resume_from_checkpoint=trainer.newest_checkpoint())
    trainer.export_pretrained("final")
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import tempfile
import uuid
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal

import torch

from sealpoint import _directories, _paths, _tree
from sealpoint._arguments import Provenance, path_of
from sealpoint._checkpoint import Checkpoint, Path
from sealpoint._checkpoint import open_own as open_checkpoint
from sealpoint._errors import InvalidArgumentError, MismatchError, NotFoundError, UncommittedError, UnsupportedError
from sealpoint._option_table import DEADLINE_DEFAULT_SECONDS
from sealpoint._save_future import SaveFuture
from sealpoint._tree import PerRank
from sealpoint._tree_paths import entries_of
from sealpoint.accelerate import RESUME_CONTRACT, check_supported, unwrapped
from sealpoint.interop._destination import check_room, prepare, publishing
from sealpoint.torch import _shards
from sealpoint.torch._arguments import check
from sealpoint.torch._checkpointer import Checkpointer, log_findings
from sealpoint.torch._contract import Contract
from sealpoint.torch._dtypes import DTYPE_OF
from sealpoint.torch._load import load
from sealpoint.torch._options import ResumeKeywords
from sealpoint.torch._promotions import resume_promotions
from sealpoint.torch._random import random_states, set_random_states
from sealpoint.torch._session import session_of

try:
    _transformers: Any = import_module("transformers")
    _callbacks: Any = import_module("transformers.trainer_callback")
    _utils: Any = import_module("transformers.trainer_utils")
except ImportError as error:
    raise ImportError(f"sealpoint.transformers needs transformers, which cannot be imported: {error}") from error
_log = logging.getLogger("sealpoint")
# Methods that the Trainer calls when it saves and resumes. A Trainer without one of them would silently save and load in its own
# way.
_OVERRIDDEN = ("_save_checkpoint", "_load_from_checkpoint", "_load_optimizer_and_scheduler", "_load_rng_state",
               "_load_best_model", "_finalize_training", "_get_output_dir")  # fmt: skip
_lacking = [name for name in _OVERRIDDEN if not hasattr(_transformers.Trainer, name)]
if _lacking:
    raise ImportError(
        f"sealpoint.transformers needs a Trainer with {', '.join(_lacking)}, which transformers "
        f"{_transformers.__version__} does not have, expected 5.24 or one like it"
    )
_STATE_NAME = "trainer_state.json"  # the file of a checkpoint that the Trainer itself reads
_TRAINING = "sealpoint_training"  # entry in the Trainer's state: the id of the training run, which a resumed run keeps
_KEEP_MIN = 2
# Default of export_pretrained, in decimal gigabytes, as in transformers.
SHARD_SIZE_DEFAULT = "5GB"


class _OfTrainer(Checkpointer):
    def _note_rank(self, step: int, provenance: Provenance | None) -> None:
        """Treats every save as ranked by the metric.

        The Trainer itself has already compared the saves. A save without the metric is therefore worse than an earlier save.
        """


class SealpointTrainer(_transformers.Trainer):  # type: ignore[misc]
    """A Trainer that saves a series of Sealpoint checkpoints: each rank saves its own part, in the background.

    All TrainingArguments keep their meaning, except that ``save_total_limit`` is at least 2 and checkpoints have series names. To
    combine this class with a different Trainer, list it first among the bases: ``class Mine(SealpointTrainer, SFTTrainer): ...``

    Args:
        checkpoint_options: Options of ``sealpoint.torch.Checkpointer`` except ``every``, ``keep`` and ``process_group``. The option
            ``directory`` is the directory of the series, and may be a URL of an object store; default: ``output_dir``.
        resume_options: Options of ``sealpoint.torch.load``, such as ``contract`` and ``convert``.
        others: As for the class ``transformers.Trainer``.

    If a save fails, the next save raises the error. At its end, ``train`` waits for all saves and raises the error of a failed
    save. With ``on_error="warn"``, errors of saves are only logged.

    Raises:
        UnsupportedError: the Trainer uses DeepSpeed, FSDP1 or XLA, or pushes checkpoints to the hub.
        Error: as for ``Checkpointer``.

    Examples:
        >>> from sealpoint.transformers import SealpointTrainer
        >>> from transformers import LlamaConfig, LlamaForCausalLM, TrainingArguments
        >>> model = LlamaForCausalLM(LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        ...                                      num_attention_heads=2))
        >>> data = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}] * 8
        >>> arguments = TrainingArguments("run", max_steps=2, save_steps=2, disable_tqdm=True, report_to=[], use_cpu=True)
        >>> trainer = SealpointTrainer(model, arguments, train_dataset=data)
        >>> trainer.train(resume_from_checkpoint=trainer.newest_checkpoint()).global_step
        {'train_runtime': ...}
        2
    """

    def __init__(self, *args: Any, checkpoint_options: Mapping[str, Any] | None = None,
                 resume_options: ResumeKeywords | None = None, **kwargs: Any) -> None:
        self._checkpoint_options = dict(checkpoint_options or {})
        for name in ("every", "keep", "keep_best", "keep_every", "on_sigterm", "process_group"):
            if name in self._checkpoint_options:
                raise InvalidArgumentError(f"checkpoint_options has {name!r}, expected settings of TrainingArguments for it")
        self._place = self._checkpoint_options.pop("directory", None)
        self._resume_options: ResumeKeywords = {"contract": RESUME_CONTRACT, **(resume_options or {})}
        super().__init__(*args, **kwargs)
        self._training = ""
        self._checkpoints = self._make_checkpoints(None)  # created here to detect errors in the options
        self._begin: tuple[str, str] | None = None  # checkpoint to resume from, and the folder passed to the Trainer
        self._begin_best: str | None = None  # best checkpoint up to the checkpoint to resume from
        self._loaded_best: str | None = None  # the best checkpoint, if it was loaded at the end
        self._resumed_random: Any = None
        self._best: Any = None  # result of the save of the best step so far, until the next save

    def _best_key(self) -> str:
        # The key contains the id of the training run, because metrics of different runs in a series cannot be compared.
        return f"metric.best.{self._training}" if self._training else "metric.best"  # the name in 1.0.0-rc2

    def _make_checkpoints(self, trial: Any) -> Checkpointer:
        limit = self.args.save_total_limit
        best: Literal["least", "greatest"] = "greatest" if self.args.greater_is_better else "least"
        keep_best = None if self.args.metric_for_best_model is None else (self._best_key(), best, 1)
        return _OfTrainer(
            self._get_output_dir(trial) if self._place is None else self._place,
            keep=max(_KEEP_MIN, limit) if limit is not None and limit > 0 else None, keep_best=keep_best, on_sigterm=None,
            **self._checkpoint_options,
        )  # fmt: skip

    def newest_checkpoint(self) -> str | None:
        """Returns the checkpoint from which ``train`` should resume, or None. Collective: all ranks call it.

        The result is the newest usable checkpoint, or a checkpoint that a plain Trainer saved earlier. Raises the errors of
        ``Checkpointer.newest``.
        """
        staged = self._checkpoint_options.get("staged")
        directory = self.args.output_dir if self._place is None else self._place
        if staged is not None:
            resume_promotions(staged, directory, keep_local=self._checkpoint_options.get("keep_local", 0))
        newest = self._checkpoints.newest()
        if newest is not None:
            return newest
        folder = self.args.output_dir

        def find() -> str | None:
            return _utils.get_last_checkpoint(folder) if os.path.isdir(folder) else None

        return _ask_first("find a checkpoint of the Trainer in", folder, find)  # type: ignore[no-any-return]

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains, and returns the same result as ``Trainer.train``. Collective: all ranks call it.

        Args:
            resume_from_checkpoint: A Sealpoint checkpoint, a checkpoint of a plain Trainer, or True for the newest checkpoint,
                which must exist.

        Raises:
            NotFoundError: ``resume_from_checkpoint`` is True, but no checkpoint was ever saved.
            UnsupportedError: as for the class.
            Error: as for ``sealpoint.torch.load``, or the error of a failed save.
        """
        check_supported(self.accelerator)
        if self.args.push_to_hub and self.args.hub_strategy in ("every_save", "checkpoint", "all_checkpoints"):
            raise UnsupportedError(
                f'hub_strategy is {str(self.args.hub_strategy)!r}, which uploads checkpoints of the Trainer; expected "end"'
            )
        source = None if resume_from_checkpoint is False else resume_from_checkpoint
        if source is True:
            source = self.newest_checkpoint()
            if source is None:
                raise NotFoundError("no checkpoint was ever committed here, and resume_from_checkpoint is True",
                                    path=self.args.output_dir)
        self._begin = self._best = self._begin_best = self._loaded_best = None
        state = None if source is None else _trainer_state(source)
        if state is None:
            self._training = _ask_first("begin in", self.args.output_dir, lambda: uuid.uuid4().hex)
        else:
            self._training = state.pop(_TRAINING, "")
        self._checkpoints = self._make_checkpoints(kwargs.get("trial", args[0] if args else None))
        with self._checkpoints, tempfile.TemporaryDirectory(prefix="sealpoint-") as folder:
            if state is not None:
                with open(os.path.join(folder, _STATE_NAME), "w", encoding="utf-8") as file:
                    json.dump(state, file)
                self._begin_best = state.get("best_model_checkpoint")
                self._begin, source = (path_of(source, "resume_from_checkpoint"), folder), folder
            return super().train(source, *args, **kwargs)

    def _state(self) -> dict[str, Any]:
        """Returns the state that a save stores and a resume fills."""
        state = {"model": unwrapped(self.model), "trainer": ""}
        if not self.args.save_only_model:
            state |= {"optimizer": self.optimizer, "scheduler": self.lr_scheduler, "rng": PerRank(random_states())}
            if getattr(self.accelerator, "scaler", None) is not None:
                state["scaler"] = self.accelerator.scaler
        return state

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if self.hp_search_backend is None and trial is None:
            self.store_flos()
        self._checkpoints.wait()
        self._note_best()
        state, provenance = self._state(), {}
        state["trainer"] = _ask_first("save", self.args.output_dir, self._trainer_state)
        is_best = self.state.best_global_step == self.state.global_step
        if is_best:
            provenance[self._best_key()] = float(self.state.best_metric)
        saved = self._checkpoints.save(self.state.global_step, state, provenance=provenance)
        if is_best:
            self._best = saved

    def _trainer_state(self) -> str:
        """Returns the state of the Trainer as JSON, as the Trainer writes it to a file.

        Called on rank 0 only, because the times in the log differ between ranks.
        """
        states: dict[str, Any] = {}
        for callback in [*self.callback_handler.callbacks, self.control]:
            if isinstance(callback, _callbacks.ExportableState):
                states.setdefault(type(callback).__name__, []).append(callback.state())
        self.state.stateful_callbacks = {name: found if len(found) > 1 else found[0] for name, found in states.items()}
        return json.dumps({**dataclasses.asdict(self.state), _TRAINING: self._training})

    def _note_best(self) -> None:
        """Records the directory of the best checkpoint in the Trainer's state, after this checkpoint is committed."""
        saved, self._best = self._best, None
        if saved is not None and (not isinstance(saved, SaveFuture) or saved.exception() is None):
            info = saved.result() if isinstance(saved, SaveFuture) else saved
            self.state.best_model_checkpoint = info.directory

    def _is_begin(self, checkpoint: Any) -> bool:
        return self._begin is not None and checkpoint == self._begin[1]

    def _load_from_checkpoint(self, resume_from_checkpoint: Any, model: Any = None) -> None:
        if not self._is_begin(resume_from_checkpoint):  # otherwise, everything is loaded when the optimizer exists
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_optimizer_and_scheduler(self, checkpoint: Any) -> None:
        if not self._is_begin(checkpoint):
            return super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[no-any-return]
        state = self._state()
        assert self._begin is not None
        log_findings(load(state, self._begin[0], **self._resume_options))
        self._checkpoints.note_begin()
        if "rng" in state:
            self._resumed_random = state["rng"].value
        best = self._begin_best
        if best is not None and _ask_first("look at", best, lambda: _directories.is_checkpoint(best)):
            self.state.best_model_checkpoint = best  # the Trainer looked for a local folder, and did not find a URL
        return None

    def _load_rng_state(self, checkpoint: Any) -> None:
        if not self._is_begin(checkpoint):
            super()._load_rng_state(checkpoint)
        elif self._resumed_random is not None:
            set_random_states(self._resumed_random)

    def _finalize_training(self, *args: Any, **kwargs: Any) -> Any:
        self._checkpoints.finish()
        self._note_best()
        limit, self.args.save_total_limit = self.args.save_total_limit, None  # with a limit, the Trainer would delete folders
        try:
            return super()._finalize_training(*args, **kwargs)
        finally:
            self.args.save_total_limit = limit

    def _load_best_model(self) -> None:
        best = self.state.best_model_checkpoint
        if not _ask_first("look at", best, lambda: _directories.is_checkpoint(best)):
            return super()._load_best_model()  # type: ignore[no-any-return]
        _log.info("the best model, with %s, is loaded from %s", self.state.best_metric, best)
        load({"model": unwrapped(self.model)}, best, contract=Contract.partial())
        self._loaded_best = best
        return None

    def export_pretrained(self, directory: Path, **options: Any) -> str:
        """Exports the model in its state after ``train`` to a folder for ``from_pretrained``, and returns the path of the folder.

        Arguments and errors are as for the function ``export_pretrained``.

        Exports the best step if ``load_best_model_at_end`` is set. Otherwise, exports the last step, which is saved first if
        necessary. Collective: all ranks call it, after ``train``. Also raises UncommittedError if the last step could not be saved
        and the error of the save was only logged (``on_error``).
        """
        source = self._loaded_best or self._newest_of_step()
        if source is None:
            self._save_checkpoint(self.model, None)
            source = self._newest_of_step()
        if source is None:
            raise UncommittedError(f"step {self.state.global_step} has no checkpoint, because its save failed",
                                   path=self.args.output_dir)
        options.setdefault("processing_class", self.processing_class)
        return export_pretrained(self.model, source, directory, **options)

    def _newest_of_step(self) -> str | None:
        """Returns the newest checkpoint if it belongs to the current step of the training run, or None."""
        self._checkpoints.finish()
        newest = self._checkpoints.newest()
        if newest is None or _ask_first("look at", newest, lambda: _step_of(newest)) != self.state.global_step:
            return None
        return newest


def _ask_first(kind: str, path: Any, make: Callable[[], Any], deadline: float | None = DEADLINE_DEFAULT_SECONDS) -> Any:
    """Calls make() on rank 0 and returns its result, or raises its error, on every rank. Collective."""
    with session_of(None).call(kind, path, deadline=deadline) as call:
        return call.run_on_first(make)


def _step_of(path: Any) -> int | None:
    with open_checkpoint(path, check_files=False) as checkpoint:
        return checkpoint.step


def _trainer_state(path: Any) -> dict[str, Any] | None:
    """Returns the stored state of the Trainer on all ranks, or None if the path is not a Sealpoint checkpoint.

    Raises InvalidArgumentError if the checkpoint was not saved by a Trainer, and any error from opening the checkpoint.
    """

    def find() -> str | None:
        place = path_of(path, "resume_from_checkpoint")
        if not _directories.is_checkpoint(place):
            _paths.local(place, "resume_from_checkpoint", "there is no checkpoint of this library")
            return None
        with open_checkpoint(place) as checkpoint:
            text = _node_of(checkpoint, "trainer")
            if not isinstance(text, str):
                raise InvalidArgumentError("its value 'trainer' is not the state of a Trainer", path=place)
            state = json.loads(text)
            if state["best_global_step"] == checkpoint.step is not None:  # its directory was not yet known when the state was saved
                state["best_model_checkpoint"] = place
            return json.dumps(state)

    found = _ask_first("resume from", path, find)
    return None if found is None else dict(json.loads(found))


def _node_of(checkpoint: Checkpoint, part: str) -> Any:
    """Returns the node at the path ``part`` of the tree, such as "model" or "models.0". Raises NotFoundError."""
    node = _tree.parse(bytes(checkpoint.objects[_tree.OBJECT])) if _tree.OBJECT in checkpoint.objects else {}
    for key in part.split("."):
        entries = dict(enumerate(node)) if isinstance(node, list) else entries_of(node) or {}
        entries = {str(name): entry for name, entry in entries.items()}
        if key not in entries:
            raise NotFoundError(
                f"the checkpoint has no {part!r}, expected one of {', '.join(sorted(entries)[:8])}", path=checkpoint.path
            )
        node = entries[key]
    return node


def export_pretrained(model: Any, checkpoint: Path, directory: Path, *, part: str = "model", processing_class: Any = None,
                      max_shard_size: int | str = SHARD_SIZE_DEFAULT, threads: int | None = None) -> str:
    """Exports the weights of a checkpoint in the form of ``model.save_pretrained``, and returns the path of the new folder.

    The folder contains the config, the safetensors files, and the other files of the model and its tokenizer. If there are several
    safetensors files, the folder also contains an index. The folder gets its final name when it is complete and durable. After an
    error, the folder does not exist. If an export is killed, the next export to the same path removes the files that it left. Rank
    0 reads and writes all weights, and needs memory for all of them. In contrast, ``ckpt convert --to hf`` streams the weights.
    Collective: all ranks call it.

    Args:
        model: PreTrainedModel, wrapped or not, on any device including "meta". The values of its parameters are not used.
        checkpoint: Checkpoint of a ``SealpointTrainer``, or any other checkpoint that stores the state of the model at ``part``.
        directory: Path of the new folder. The path must not exist, or must be an empty directory.
        part: Name under which the checkpoint stores the model's state: "model" for a SealpointTrainer, "models.0" for an
            AcceleratorCheckpointer.
        processing_class: Tokenizer or processor to save with the model.
        max_shard_size: Maximum size of a file, as for ``save_pretrained``.
        threads: Number of threads that read and verify. Default: as for ``sealpoint.open``.

    Raises:
        NotFoundError: the checkpoint has no ``part``.
        MismatchError: the weights do not fit the model.
        AlreadyExistsError: the directory is not empty.
        NoSpaceError: the storage is full.
        IoError: the storage failed.
        UnsupportedError: the directory is a URL.
        Error: as for ``sealpoint.open``.

    Errors are the same on all ranks.

    Examples:
        >>> import sealpoint.torch as sp
        >>> from sealpoint.transformers import export_pretrained
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> model = LlamaForCausalLM(LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        ...                                      num_attention_heads=2))
        >>> _ = sp.save({"model": model}, "checkpoint")
        >>> folder = export_pretrained(model, "checkpoint", "final")
        >>> type(LlamaForCausalLM.from_pretrained(folder)).__name__
        'LlamaForCausalLM'
    """
    check(threads=threads)
    whole = unwrapped(model)
    if not isinstance(whole, _transformers.PreTrainedModel):
        raise InvalidArgumentError(f"model is a {type(whole).__name__}, expected a PreTrainedModel")

    def write() -> str:
        place = _paths.local(path_of(directory, "directory"), "directory", "transformers writes files")
        path = prepare(place, may_be_empty=True, is_directory=True, is_dry_run=False)
        with open_checkpoint(checkpoint) as opened:
            check_room(path, sum(opened[name].nbytes for name in opened if name.startswith(f"{part}.")))
            weights = _weights_of(opened, part, threads)
            _check_names(weights, whole, opened.path)
        with publishing(path, is_directory=True, may_be_empty=True) as folder:
            whole.save_pretrained(folder, state_dict=weights, max_shard_size=max_shard_size)
            if processing_class is not None:
                processing_class.save_pretrained(folder)
        return path

    return str(_ask_first("export", directory, write, deadline=None))


def _weights_of(checkpoint: Checkpoint, part: str, threads: int | None) -> dict[str, Any]:
    """Reads and verifies the weights, and returns them in new tensors.

    If the model has a weight at several places, all these places get the same tensor.
    """
    tensors: dict[str, torch.Tensor] = {}

    def make(name: str) -> torch.Tensor:
        if name not in tensors:
            stored = checkpoint[name]
            if stored.dtype_name not in DTYPE_OF:
                raise UnsupportedError(f"this torch has no dtype {stored.dtype_name}", tensor=name)
            tensors[name] = torch.empty(stored.shape, dtype=DTYPE_OF[stored.dtype_name])
        return tensors[name]

    weights = _tree.Decoder(make).decode(_node_of(checkpoint, part))
    checkpoint.read({name: _shards.destination_of(tensor) for name, tensor in tensors.items()}, threads=threads)
    return dict(weights)


def _check_names(weights: Mapping[str, Any], model: Any, path: str) -> None:
    """Raises MismatchError, which names the first difference, if the weights belong to a different model."""
    own = {name: tuple(getattr(value, "shape", ())) for name, value in model.state_dict().items()}
    stored = {name: tuple(getattr(weight, "shape", ())) for name, weight in weights.items()}
    for name in sorted({*own, *stored}):
        if own.get(name) != stored.get(name):
            raise MismatchError(
                f"stored with shape {stored.get(name, 'none')}, in the model it is {own.get(name, 'none')}",
                path=path, tensor=name,
            )


__all__ = ["SealpointTrainer", "export_pretrained"]
