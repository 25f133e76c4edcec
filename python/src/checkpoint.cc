// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/checkpoint.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/attributes.h"
#include "python/src/checkpoint_handle.h"
#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "python/src/watch.h"

namespace sealpoint::python {
namespace {

using BasePaths = std::map<std::string, std::string>;  // by attempt

std::map<AttemptId, std::string> DirectoriesOf(const BasePaths& paths) {
  std::map<AttemptId, std::string> directories;
  for (const auto& [attempt, path] : paths) directories.emplace(IdOf<AttemptId>(attempt), path);
  return directories;
}

BasePaths PathsOf(const std::map<AttemptId, std::string>& directories) {
  BasePaths paths;
  for (const auto& [attempt, path] : directories) paths.emplace(attempt.ToHex(), path);
  return paths;
}

std::unique_ptr<CheckpointHandle> Open(nb::handle path, bool check_files,
                                       std::optional<bool> direct_io,
                                       std::uint64_t memory_budget_bytes,
                                       std::uint64_t raise_limits, const BasePaths& base_paths) {
  const std::string directory = PathOf(path);
  const OpenOptions options{.limits = RaisedLimits(raise_limits),
                            .check_files = check_files,
                            .base_directories = DirectoriesOf(base_paths),
                            .direct_io = direct_io,
                            .memory_budget_bytes = memory_budget_bytes};
  const GilRelease released;
  return std::make_unique<CheckpointHandle>(Value(Checkpoint::Open(directory, options)), options);
}

nb::bytes ReadObject(CheckpointHandle& handle, const std::string& name) {
  const auto checkpoint = handle.Get();
  Bytes bytes;
  {
    const GilRelease released;
    bytes = Value(checkpoint->ReadObject(name));
  }
  return BytesOf(bytes);
}

template <typename T>
T Require(std::optional<T> found, const char* what, const std::string& name) {
  if (!found) {
    Status error(Code::kNotFound, std::string("the checkpoint has no such ") + what);
    const bool is_tensor = what[0] == 't';
    throw StatusError(is_tensor ? std::move(error).AtTensor(name)
                                : std::move(error).AtObject(name));
  }
  return *std::move(found);
}

// (offset, extent, run or None, blob) of each shard.
nb::list Shards(CheckpointHandle& handle, const std::string& name) {
  nb::list result;
  for (const ShardInfo& shard : Value(handle.Get()->Shards(name))) {
    const Region& region = shard.region;
    nb::object run = nb::none();
    if (region != Region::Of(region.box)) run = nb::make_tuple(region.run.begin, region.run.end);
    result.append(nb::make_tuple(nb::tuple(nb::cast(region.box.offset)),
                                 nb::tuple(nb::cast(region.box.extent)), run, shard.blob.ToHex()));
  }
  return result;
}

using CodecCounts = std::vector<std::pair<std::string, std::uint64_t>>;

std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, CodecCounts> Chunks(
    CheckpointHandle& handle, const std::string& name) {
  const auto checkpoint = handle.Get();
  const GilRelease released;
  const StoredChunks chunks = Value(checkpoint->TensorChunks(name));
  CodecCounts codecs;
  for (const auto& codec : chunks.codecs) {
    codecs.emplace_back(CodecName(codec.codec), codec.chunk_count);
  }
  return {chunks.chunk_count, chunks.raw_bytes, chunks.stored_bytes, codecs};
}

std::vector<TensorInfo> Match(CheckpointHandle& handle, const std::vector<std::string>& patterns) {
  const auto checkpoint = handle.Get();
  const GilRelease released;
  return Value(checkpoint->MatchTensors(patterns));
}

using BlobTuples = std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>;

BlobTuples Blobs(CheckpointHandle& handle) {
  BlobTuples result;
  for (const BlobInfo& blob : handle.Get()->blobs()) {
    result.emplace_back(blob.id.ToHex(), blob.file_size_bytes, blob.chunk_count);
  }
  return result;
}

void BindInfos(nb::module_& m) {
  nb::class_<TensorInfo>(m, "TensorInfo", "Metadata of a tensor in the index.")
      .def_ro("name", &TensorInfo::name)
      .def_prop_ro(
          "dtype", [](const TensorInfo& tensor) { return std::string(DTypeName(tensor.dtype)); },
          "Name of the dtype in the specification, such as \"bf16\".")
      .def_ro("element_size", &TensorInfo::element_size, "In bytes.")
      .def_prop_ro(
          "shape", [](const TensorInfo& tensor) { return nb::tuple(nb::cast(tensor.shape)); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_ro("chunk_size_bytes", &TensorInfo::chunk_size_bytes)
      .def_ro("raw_bytes", &TensorInfo::raw_bytes)
      .def_ro("shard_count", &TensorInfo::shard_count)
      .def_ro("placement", &TensorInfo::placement)
      .def_ro("fingerprint", &TensorInfo::fingerprint)
      .def_prop_ro("attributes",
                   [](const TensorInfo& tensor) { return DictOf(tensor.attributes); });
  nb::class_<BaseRef>(m, "BaseRef", "The base of a checkpoint that stores changes.")
      .def_prop_ro("attempt", [](const BaseRef& base) { return base.attempt.ToHex(); })
      .def_prop_ro("index_digest", [](const BaseRef& base) { return base.index_digest.ToHex(); })
      .def_prop_ro(
          "step", [](const BaseRef& base) { return StepOrNone(base.step); },
          nb::sig("def step(self) -> int | None"))
      .def_ro("depth", &BaseRef::depth, "Number of checkpoints that the delta needs.");
  nb::class_<ObjectInfo>(m, "ObjectInfo", "Metadata of an object in the index.")
      .def_ro("name", &ObjectInfo::name)
      .def_ro("media_type", &ObjectInfo::media_type)
      .def_ro("size_bytes", &ObjectInfo::size_bytes);
}

void BindProperties(nb::class_<CheckpointHandle>& type) {
  using Self = CheckpointHandle&;
  type.def_prop_ro(
          "options",
          [](Self self) {
            const OpenOptions& options = self.options();
            const std::uint64_t raise_limits =
                options.limits.tensor_count_max / Limits().tensor_count_max;
            return nb::make_tuple(options.check_files, options.direct_io,
                                  options.memory_budget_bytes, raise_limits,
                                  PathsOf(options.base_directories));
          },
          nb::sig("def options(self) -> tuple[bool, bool | None, int, int, dict[str, str]]"),
          "check_files, direct_io, memory_budget_bytes, raise_limits and base_paths, as passed to "
          "open.")
      .def_prop_ro(
          "path", [](Self self) { return Text(self.Get()->path()); },
          nb::sig("def path(self) -> str"))
      .def_prop_ro("attempt", [](Self self) { return self.Get()->attempt().ToHex(); })
      .def_prop_ro(
          "parent", [](Self self) { return HexOrNone(self.Get()->parent()); },
          nb::sig("def parent(self) -> str | None"))
      .def_prop_ro("sequence", [](Self self) { return self.Get()->sequence(); })
      .def_prop_ro(
          "step", [](Self self) { return StepOrNone(self.Get()->step()); },
          nb::sig("def step(self) -> int | None"))
      .def_prop_ro("base", [](Self self) { return self.Get()->base(); })
      .def_prop_ro("as_base", [](Self self) { return self.Get()->as_base(); })
      .def_prop_ro("created_unix_ns", [](Self self) { return self.Get()->created_unix_ns(); })
      .def_prop_ro("raw_bytes", [](Self self) { return self.Get()->raw_bytes(); })
      .def_prop_ro("mesh", [](Self self) { return self.Get()->mesh(); })
      .def_prop_ro("provenance", [](Self self) { return self.Get()->provenance(); })
      .def_prop_ro("attributes", [](Self self) { return DictOf(self.Get()->attributes()); })
      .def_prop_ro("blobs", Blobs, "(id, file size in bytes, chunk count) of each blob.")
      .def_prop_ro("tensor_count", [](Self self) { return self.Get()->tensor_count(); })
      .def_prop_ro("object_count", [](Self self) { return self.Get()->object_count(); });
}

void BindContents(nb::class_<CheckpointHandle>& type) {
  using Self = CheckpointHandle&;
  type.def(
          "tensor_name", [](Self self, std::size_t i) { return Text(self.Get()->tensor_name(i)); },
          nb::sig("def tensor_name(self, i: int) -> str"))
      .def("has_tensor",
           [](Self self, const std::string& name) {
             return self.Get()->FindTensor(name).has_value();
           })
      .def("tensor",
           [](Self self, const std::string& name) {
             return Require(self.Get()->FindTensor(name), "tensor", name);
           })
      .def("match", Match)
      .def("has_object",
           [](Self self, const std::string& name) {
             return self.Get()->FindObject(name).has_value();
           })
      .def("object_at", [](Self self, std::size_t i) { return self.Get()->object(i); })
      .def("object",
           [](Self self, const std::string& name) {
             return Require(self.Get()->FindObject(name), "object", name);
           })
      .def("read_object", ReadObject)
      .def("shards", Shards,
           nb::sig("def shards(self, name: str) -> list[tuple[tuple[int, ...], tuple[int, ...], "
                   "tuple[int, int] | None, str]]"))
      .def("chunks", Chunks);
}

}  // namespace

void BindCheckpoint(nb::module_& m) {
  BindInfos(m);
  nb::class_<CheckpointHandle> type(m, "Checkpoint", "An open checkpoint.");
  type.def("close", &CheckpointHandle::Close);
  BindProperties(type);
  BindContents(type);
  m.def("open", Open, nb::arg("path"), nb::arg("check_files"), nb::arg("direct_io").none(),
        nb::arg("memory_budget_bytes"), nb::arg("raise_limits"),
        nb::arg("base_paths") = BasePaths{},
        nb::sig("def open(path: str | bytes | os.PathLike[str], check_files: bool, direct_io: "
                "bool | None, memory_budget_bytes: int, raise_limits: int, base_paths: dict[str, "
                "str] = {}) -> Checkpoint"));
}

}  // namespace sealpoint::python
