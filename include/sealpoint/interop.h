// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_INTEROP_H_
#define SEALPOINT_INTEROP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/codec.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"
#include "sealpoint/export.h"
#include "sealpoint/safetensors.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Checkpoints of models of safetensors, and models of checkpoints. Each element, name, dtype and
// shape is kept as it is, or it is an error; nothing is cast. What `sealpoint convert` of the
// Python package makes is the same.
//
// What is no tensor lies in the __metadata__ of a file of safetensors: objects of a checkpoint
// under keys of their own, which other programs ignore, and what others had written there in the
// object "safetensors.metadata". A checkpoint that is made here can be loaded by sealpoint.torch.

namespace sealpoint {

struct ImportOptions {
  // Only tensors whose names match one of these as a whole (Checkpoint::MatchTensors has the form),
  // and then no objects; empty: all.
  std::vector<std::string> match{};
  Codec codec = Codec::kNone;
  std::uint64_t chunk_size_bytes = kChunkSizeDefaultBytes;
  // Besides the engine's memory; at least 64 KiB. A larger tensor is stored in parts of about this
  // size.
  std::uint64_t buffer_size_bytes = 64 * kMiB;
  // Of the checkpoint. The provenance gets "convert.from" besides: "safetensors", or "hf" for a
  // directory.
  CommitOptions commit{};
  // Is called with the bytes of tensors that are done, on the caller's thread.
  std::function<void(std::uint64_t bytes)> on_progress{};
};

// Makes a checkpoint of a model, in a directory that does not exist yet or is empty, on the storage
// of the engine. One pass; memory does not depend on the size of the model. Single process. Errors:
// AlreadyExists (the directory is not empty), NotFound (a pattern that matches nothing), Corrupt
// (objects that are not what this library wrote), those of SafetensorsModel::Read, BlobWriter and
// Commit. After an error nothing but the directory is left, unless OutcomeIsUnknown. Durability: of
// Commit.
SEALPOINT_EXPORT Result<CommitInfo> ImportSafetensors(Engine& engine, const SafetensorsModel& model,
                                                      const std::string& directory,
                                                      const ImportOptions& options = {});

struct ExportOptions {
  // As of ImportOptions.
  std::vector<std::string> match{};
  // Leave out all that is no tensor.
  bool tensors_only = false;
  // A file of a directory gets no further tensor that would make it larger, of tensors alone. The
  // default is that of Hugging Face, decimal.
  std::uint64_t shard_size_max_bytes = 5'000'000'000;
  // Besides what the checkpoint takes for reading; at least 64 KiB.
  std::uint64_t buffer_size_bytes = 64 * kMiB;
  // Of the header of a file: larger ones other programs refuse.
  std::uint64_t header_size_max_bytes = 100'000'000;
  ReadOptions read{};
  // Where the model is written; PosixStorage() if null.
  std::shared_ptr<Storage> storage{};
  // Is called with the bytes of tensors that are written, on the caller's thread.
  std::function<void(std::uint64_t bytes)> on_progress{};
};

struct ExportReport {
  std::vector<std::pair<std::string, std::uint64_t>> files{};  // name and size in bytes
  std::uint64_t tensor_count = 0;
  std::uint64_t raw_bytes = 0;     // of the tensors
  std::uint64_t object_count = 0;  // that went into __metadata__
  friend bool operator==(const ExportReport&, const ExportReport&) = default;
};

// Makes a model of a checkpoint. A path that ends in ".safetensors" becomes one file; any other a
// directory, which may exist: with model.safetensors, or with model-00001-of-… and an index if
// there is more than shard_size_max_bytes. Every byte of the checkpoint is verified before it is
// written. One pass; memory does not depend on the size. Files have other names until all of them
// are durable. Single process. Errors: AlreadyExists (a file of safetensors, or an index, is there
// already), NotFound (a pattern that matches nothing), Unsupported (a dtype, or a name, that
// safetensors lacks; a file system without exclusive publication), LimitExceeded (the header),
// those of Checkpoint::Read, NoSpace, Io. After an error no file is left. Durability: after success
// the files survive a crash.
SEALPOINT_EXPORT Result<ExportReport> ExportSafetensors(const Checkpoint& checkpoint,
                                                        const std::string& path,
                                                        const ExportOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_INTEROP_H_
