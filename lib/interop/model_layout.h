// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_MODEL_LAYOUT_H_
#define SEALPOINT_LIB_INTEROP_MODEL_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/safetensors/header.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::interop {

// A file of a model, before it is written: its first bytes, and the tensors that lie behind them,
// one behind the other. An index has no tensors.
struct PlannedFile {
  std::string name;
  std::string head;
  std::vector<TensorInfo> tensors;
  std::uint64_t payload_size = 0;
  std::uint64_t size() const { return head.size() + payload_size; }
};

struct LayoutOptions {
  std::string file_name{};  // of the one file; empty: a directory
  std::uint64_t shard_size_max_bytes = 0;
  std::uint64_t header_size_max_bytes = 0;
};

// In the order in which they are to be published: an index comes last. `metadata` goes into the
// first. Errors: Unsupported (a dtype or a name that safetensors lacks), LimitExceeded (a header).
Result<std::vector<PlannedFile>> LayOutModel(const LayoutOptions& options,
                                             safetensors::StringPairs metadata,
                                             std::vector<TensorInfo> tensors);

}  // namespace sealpoint::internal::interop

#endif  // SEALPOINT_LIB_INTEROP_MODEL_LAYOUT_H_
