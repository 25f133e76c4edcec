# SPDX-License-Identifier: Apache-2.0
"""A small training under torchtitan's checkpoint manager, of either version; imported before torchtitan."""

import framework_stubs
import torch
import torch._dynamo  # as optimizers do when they step: once, before ranks are forked
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch_states import Model, parallel, whole

framework_stubs.install("tyro", "triton", "torchdata", "datasets", "tokenizers", "tensorboard", "wandb", "einops", "PIL",
                        "spmd_types", "torch_checkpointing", "tomli")
from sealpoint.torchtitan import SealpointCheckpointManager, _manager, enable  # noqa: E402

HAS_CONFIG = _manager._HAS_CONFIG
FLAT = StateDictOptions(flatten_optimizer_state_dict=True)


class Optimizers:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def init_cache_state_dict(self):
        pass

    def state_dict(self):
        return get_optimizer_state_dict(self.model, self.optimizer, options=FLAT)

    def load_state_dict(self, state):
        set_optimizer_state_dict(self.model, self.optimizer, state, options=FLAT)


class Values:
    """Something with a state of a few values."""

    def __init__(self, **values):
        self.values = values

    def state_dict(self):
        return dict(self.values)

    def load_state_dict(self, state):
        self.values.update(state)


class Large(Model):
    """With its optimizer 75 MB of states."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.rand(6104, 1024))

    def forward(self, x):
        return super().forward(x) + self.table.square().mean()


class Wide(Model):
    """With parameters of 32 bits, and nothing else."""

    def __init__(self):
        super().__init__()
        del self.steps


class Narrow(Wide):
    """With parameters of 16 bits."""

    def __init__(self):
        super().__init__()
        self.bfloat16()


class Run:
    """A process of a training, from its start: what it holds is gone with it."""

    def __init__(self, folder, mode="fsdp", seed=1, native=False, model=Model, **settings):
        torch.manual_seed(seed)
        rank, size = dist.get_rank(), dist.get_world_size()
        self.model = parallel(model(), mode, size) if size > 1 else model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.progress = Values(step=0)
        self.loader = Values(**{f"dp_rank_{rank}": b"position 0", "world_size": size})
        parts = {"dataloader": self.loader, "model_parts": [self.model],
                 "optimizers": Optimizers(self.model, self.optimizer), "lr_schedulers": self.scheduler,
                 "states": {"train_state": self.progress}, "sd_adapter": None, "base_folder": ""}
        settings = {"folder": f"{folder}/checkpoint", **settings}
        kind = _manager._native.CheckpointManager if native else SealpointCheckpointManager
        settings = {"enable": True, "interval": 2, "keep_latest_k": 0, "last_save_model_only": False, **settings}
        if HAS_CONFIG:
            self.manager = kind.Config(**settings).build(**parts)
        else:
            import torchtitan.config

            own = {name: settings.pop(name) for name in vars(_manager.Options()) if name in settings}
            config = torchtitan.config.Checkpoint(**settings)
            self.manager = kind(**parts, checkpoint_config=config, ft_manager=None)
            self.manager.options = _manager.Options(**own)

    def step(self):
        """Returns the loss."""
        step = self.progress.values["step"] + 1
        made = torch.Generator().manual_seed(step)
        loss = self.model(torch.randint(0, 10, (4,), generator=made))
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()
        self.progress.values["step"] = step
        (own,) = (name for name in self.loader.values if name.startswith("dp_rank"))
        self.loader.values[own] = f"position {step}".encode()
        return loss.item()

    def train(self, last, is_end=False):
        """Up to this step, with saves as torchtitan's trainer has them; the losses by step."""
        losses = {}
        while self.progress.values["step"] < last:
            loss = self.step()
            losses[self.progress.values["step"]] = loss
            self.manager.save(self.progress.values["step"], last_step=is_end and self.progress.values["step"] == last)
            self.manager.maybe_wait_for_staging()
        return losses

    def wait(self):
        future = getattr(self.manager, "save_future", None)
        if future is not None:
            future.result()

    def parts(self):
        """Of all tensors, what this rank has, by name."""
        found = dict(self.model.state_dict())
        found.update({name: value for name, value in Optimizers(self.model, self.optimizer).state_dict().items()
                      if isinstance(value, torch.Tensor)})
        return found

    def tensors(self):
        return {name: whole(tensor) for name, tensor in self.parts().items()}


__all__ = ["HAS_CONFIG", "Large", "Narrow", "Run", "SealpointCheckpointManager", "Wide", "enable"]
