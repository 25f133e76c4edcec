# SPDX-License-Identifier: Apache-2.0
"""Versions of weights in vLLM, as the back end "sealpoint" of its weight transfer.

    sealpoint.weights.vllm.register()
    llm = LLM("model", weight_transfer_config={"backend": "sealpoint"})
    llm.init_weight_transfer_engine({"init_info": {"place": "s3://bucket/run/weights"}})
    llm.start_weight_update()
    llm.update_weights({"update_info": {"version": 7}})
    llm.finish_weight_update()
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sealpoint._errors import InvalidArgumentError

if TYPE_CHECKING:
    from sealpoint.weights._engine import Receiver, Weights

BACKEND = "sealpoint"


@functools.cache
def register() -> type[Any]:
    """Registers the weight transfer back end "sealpoint" with vLLM in this process, and returns its class.

    An installed package does so in each process of vLLM, by an entry point of the group ``vllm.general_plugins``. The back end
    takes one version per update. ``start_weight_update`` and ``finish_weight_update`` do nothing: the version is fetched and
    verified before the model changes, and the model serves the former version until then.

    docs/guides/weights_engines.md describes ``init_info`` and ``update_info``.

    Raises:
        ImportError: vllm cannot be imported, or has no weight transfer.

    Examples:
        >>> from sealpoint.weights.vllm import register
        >>> register().__name__
        'SealpointWeightTransferEngine'
    """
    try:
        base: Any = import_module("vllm.distributed.weight_transfer.base")
        factory: Any = import_module("vllm.distributed.weight_transfer.factory")
    except ImportError as error:
        raise ImportError(f"sealpoint.weights.vllm needs vllm with weight transfer, which cannot be imported: {error}") from error

    @dataclasses.dataclass
    class InitInfo(base.WeightTransferInitInfo):  # type: ignore[misc]
        place: str
        rename: dict[str, str] | None = None
        verify: str = "error"
        timeout: float = 600.0
        threads: int | None = None
        host_folder: str | None = None

    @dataclasses.dataclass
    class UpdateInfo(base.WeightTransferUpdateInfo):  # type: ignore[misc]
        version: int

    class SealpointWeightTransferEngine(base.WeightTransferEngine):  # type: ignore[misc]
        """Loads published versions through the model's own loader, and proves what the model holds then."""

        init_info_cls, update_info_cls = InitInfo, UpdateInfo
        supports_draft_weight_update = False  # the place has the weights of one model

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._receiver: Receiver | None = None

        def init_transfer_engine(self, init_info: Any) -> None:
            from sealpoint.weights._engine import Receiver

            self.shutdown()
            self._receiver = Receiver(**dataclasses.asdict(init_info))

        def start_weight_update(self) -> None:
            """Does nothing."""

        def receive_weights(self, update_info: Any) -> None:
            if self._receiver is None:
                raise InvalidArgumentError("there is no place yet; expected a call of init_weight_transfer_engine before")
            self._receiver.update(update_info.version, self.model, self._load)

        def _load(self, weights: Weights) -> None:
            reload: Any = import_module("vllm.model_executor.model_loader.reload")
            reload.initialize_layerwise_reload(self.model)
            try:
                self.model.load_weights(weights)
            finally:
                reload.finalize_layerwise_reload(self.model, self.model_config)

        def finish_weight_update(self) -> None:
            """Does nothing."""

        def shutdown(self) -> None:
            if self._receiver is not None:
                self._receiver.close()
                self._receiver = None

    factory.WeightTransferEngineFactory.register_engine(BACKEND, SealpointWeightTransferEngine)
    return SealpointWeightTransferEngine


def plugin() -> None:
    """Entry point of vLLM's plugins: ``register``, or nothing if this vLLM has no weight transfer."""
    with contextlib.suppress(ImportError):
        register()


__all__ = ["plugin", "register"]
