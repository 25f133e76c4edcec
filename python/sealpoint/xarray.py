# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as datasets of xarray, read lazily.

    import xarray
    dataset = xarray.open_dataset("checkpoint", engine="sealpoint")
    dataset["rho"][0:4].values  # reads and verifies only the bytes of these rows

Package metadata registers the engine when ``sealpoint`` is installed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from sealpoint import _paths
from sealpoint._arguments import Path, path_of
from sealpoint._checkpoint import Checkpoint, Tensor, open
from sealpoint._dtypes import numpy_dtype
from sealpoint._errors import Error, MismatchError, UnsupportedError
from sealpoint._group import Group
from sealpoint._native import MARKER
from sealpoint._save import save as save_tensors
from sealpoint._sealpoint import CommitInfo

__all__ = ["SealpointBackend", "save"]
_DIMENSIONS = "dimensions"
_xarray: Any = import_module("xarray")
_backends: Any = import_module("xarray.backends")
_indexing: Any = import_module("xarray.core.indexing")


class _LazyArray(_backends.BackendArray):  # type: ignore[misc]
    """A tensor that xarray reads by integers and slices. xarray reads any other index as a slice, and selects from the result."""

    def __init__(self, tensor: Tensor, dtype: Any) -> None:
        self._tensor, self.shape, self.dtype = tensor, tensor.shape, dtype

    def __getitem__(self, key: Any) -> Any:
        basic = _indexing.IndexingSupport.BASIC
        return _indexing.explicit_indexing_adapter(key, self.shape, basic, lambda box: self._tensor.read(box=box))


class SealpointBackend(_backends.BackendEntrypoint):  # type: ignore[misc]
    """Engine "sealpoint" of ``xarray.open_dataset`` and ``xarray.open_datatree``.

    Each variable is a tensor. Its elements are read and verified when they are needed, with the errors of ``Tensor.read``. The
    attribute "dimensions" names the dimensions; all other attributes become those of the variable. The checkpoint stays open until
    ``close``. Thread-safe. No call is collective. Values are not decoded; if they follow the CF conventions, pass the dataset to
    ``xarray.decode_cf``.

    Examples:
        >>> import numpy, sealpoint, xarray
        >>> from sealpoint.xarray import SealpointBackend  # or engine="sealpoint", if the package is installed
        >>> _ = sealpoint.save({"fields/rho": numpy.ones((4, 8)), "time": numpy.arange(3)}, "checkpoint")
        >>> dataset = xarray.open_dataset("checkpoint", engine=SealpointBackend, group="fields")
        >>> dataset["rho"].dims, float(dataset["rho"][:, 2].sum())
        (('dim_0_4', 'dim_1_8'), 4.0)
    """

    description = "Open Sealpoint checkpoints, lazily"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "group", "separator")
    supports_groups = True

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        separator: str = "/",
    ) -> Any:
        """Opens a checkpoint, or a group of its tensors, as a dataset. Reads no payload.

        Args:
            filename_or_obj: Path or URL of a checkpoint, as for ``sealpoint.open``.
            drop_variables: Names of variables to leave out.
            group: Name of a group, such as "a/b". The variables are the tensors below it, without this part of their names.
                Default: all tensors.
            separator: Text between the parts of a name. The states of ``sealpoint.torch`` have ".".

        Raises:
            NotFoundError: the path or the group does not exist.
            MismatchError: two variables have a dimension of the same name and of different sizes.
            UnsupportedError: numpy and ml_dtypes lack the dtype of a variable.
            Error: as for ``sealpoint.open``.
        """
        with _opened(filename_or_obj) as checkpoint:
            found = checkpoint.group(group or "", separator=separator)
            beyond = len(found.name) + len(separator) if found.name else 0
            tensors = {tensor.name[beyond:]: tensor for tensor in found.tensors}
            return _dataset(checkpoint, tensors, drop_variables, checkpoint.attributes)

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> Any:
        """Opens a checkpoint as a tree with a dataset for each group. Arguments and errors are as for ``open_dataset``.

        Raises MismatchError if two groups have the same path in the tree, which "/" separates.
        """
        return _xarray.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        separator: str = "/",
    ) -> dict[str, Any]:
        """Returns the dataset of each group by its path. Arguments and errors are as for ``open_datatree``."""
        with _opened(filename_or_obj) as checkpoint:
            groups = {"/": checkpoint.group(group or "", separator=separator)}

            def add(path: str, item: Any) -> None:
                place = "/" + path.replace(separator, "/")
                if isinstance(item, Group) and groups.setdefault(place.rstrip("/"), item) is not item:
                    raise MismatchError(f"two groups have the path {place} in a tree of xarray; open one as a dataset")

            groups["/"].visititems(add)
            attributes = {"/": checkpoint.attributes}
            return {path: _dataset(checkpoint, _own(found), drop_variables, attributes.get(path, {}))
                    for path, found in groups.items()}  # fmt: skip

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Tells whether a path or URL is a directory with a commit marker. Raises nothing."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        with contextlib.suppress(Error, OSError):
            return _paths.kind_of(f"{path_of(filename_or_obj)}/{MARKER}") == "file"
        return False


@contextlib.contextmanager
def _opened(path: Any) -> Iterator[Checkpoint]:
    """Opens a checkpoint. Closes it if the block fails; else the datasets own it."""
    checkpoint = open(path)
    try:
        yield checkpoint
    except BaseException:
        checkpoint.close()
        raise


def _own(group: Group) -> dict[str, Tensor]:
    """Returns the tensors of a group that are not in one of its groups."""
    return {key: item for key, item in group.items() if isinstance(item, Tensor)}


def _dataset(
    checkpoint: Checkpoint, tensors: Mapping[str, Tensor], dropped: str | Iterable[str] | None, attributes: Mapping[str, Any]
) -> Any:
    without = {dropped} if isinstance(dropped, str) else set(dropped or ())
    sizes: dict[str, tuple[int, str]] = {}
    variables = {}
    for name, tensor in tensors.items():
        if name in without:
            continue
        if (dtype := numpy_dtype(tensor.dtype_name)) is None:
            raise UnsupportedError(
                f"dtype is {tensor.dtype_name}, which numpy and the installed ml_dtypes lack; leave it out (drop_variables)",
                tensor=tensor.name,
            )
        dimensions, others = _dimensions(tensor)
        for dimension, size in zip(dimensions, tensor.shape, strict=True):
            other_size, other = sizes.setdefault(dimension, (size, tensor.name))
            if other_size != size:
                raise MismatchError(
                    f"dimension {dimension} has {size} elements, expected {other_size} as in {other}; open a group, or leave one "
                    "of them out (drop_variables)",
                    tensor=tensor.name,
                )
        variables[name] = _xarray.Variable(dimensions, _indexing.LazilyIndexedArray(_LazyArray(tensor, dtype)), others)
    dataset = _xarray.Dataset(variables, attrs=attributes)
    dataset.set_close(checkpoint.close)
    return dataset


def _dimensions(tensor: Tensor) -> tuple[list[str], dict[str, Any]]:
    """Returns a name for each dimension, and the other attributes.

    A name that is not stored contains the size, so tensors of different shapes fit into one dataset.
    """
    attributes = tensor.attributes
    names = attributes.get(_DIMENSIONS)
    if isinstance(names, list) and len({name for name in names if isinstance(name, str)}) == len(names) == tensor.ndim:
        return [str(name) for name in names], {key: value for key, value in attributes.items() if key != _DIMENSIONS}
    return [f"dim_{dim}_{size}" for dim, size in enumerate(tensor.shape)], attributes


def save(dataset: Any, path: Path, **options: Any) -> CommitInfo:
    """Saves a dataset of xarray, whose values are loaded into memory. Durable on return. Not collective.

    A variable becomes a tensor. Its attributes become those of the tensor, and the names of its dimensions the attribute
    "dimensions". Attributes of the dataset become those of the checkpoint. Times are encoded as in the CF conventions, and
    coordinates are named as there: ``xarray.decode_cf`` restores both.

    Args:
        dataset: Dataset, or a DataArray with a name.
        path: As for ``sealpoint.save``.
        **options: Options of ``sealpoint.save``, except for attributes.

    Raises:
        InvalidArgumentError: an attribute or a variable has a type that a checkpoint cannot hold. The error names it.
        Error: as for ``sealpoint.save``.

    Examples:
        >>> import numpy, xarray
        >>> import sealpoint.xarray
        >>> rho = xarray.DataArray(numpy.ones((2, 3)), dims=["lat", "lon"], attrs={"units": "kg m-3"})
        >>> _ = sealpoint.xarray.save(xarray.Dataset({"rho": rho}, attrs={"time": 0.5}), "checkpoint")
        >>> xarray.open_dataset("checkpoint", engine=sealpoint.xarray.SealpointBackend)["rho"].dims
        ('lat', 'lon')
    """
    conventions = import_module("xarray.conventions")
    variables, attributes = conventions.encode_dataset_coordinates(
        dataset.to_dataset() if isinstance(dataset, _xarray.DataArray) else dataset
    )
    encoded = {
        name: conventions.encode_cf_variable(variable, name=name) if variable.dtype.kind in "mM" else variable
        for name, variable in variables.items()
    }
    of_tensors = {name: {**variable.attrs, _DIMENSIONS: list(variable.dims)} for name, variable in encoded.items()}
    tensors = {name: variable.values for name, variable in encoded.items()}
    return save_tensors(tensors, path, attributes=attributes, tensor_attributes=of_tensors, **options)
