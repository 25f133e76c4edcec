// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_DCP_METADATA_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_DCP_METADATA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/state.h"

// The pickle .metadata of torch.distributed.checkpoint, as plain values.

namespace sealpoint::internal::foreign {

// Bytes of a file in the metadata's directory.
struct DcpPlace {
  std::string file;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::vector<std::string> transforms;  // transforms applied to them
  friend bool operator==(const DcpPlace&, const DcpPlace&) = default;
};

struct DcpTensor {
  DType dtype = DType::kNone;
  Shape shape;
  std::map<Box, DcpPlace> places;
};

struct DcpMetadata {
  std::map<std::string, DcpTensor> tensors;
  std::map<std::string, DcpPlace> objects;
  std::vector<std::string> names;          // of both, in stored order
  std::map<std::string, ValuePath> paths;  // of names, if the state was flattened
  // The shapes of tensors that older versions of Megatron flattened.
  std::map<std::string, Shape> true_shapes;
  std::map<std::string, Status> unread;  // errors of other items
  // Tensors that were left out because the format lacks their dtypes, each with its dtype; and the
  // files of their parts.
  std::map<std::string, std::string> dropped;
  std::set<std::string> dropped_files;
};

// If reading continues, errors of a single tensor or object are not thrown. Throws Corrupt,
// Unsupported (an unexpected class; a dtype), LimitExceeded.
DcpMetadata ReadDcpMetadata(const SourceFile& file, const ForeignOptions& options);

// Why boxes of as many dimensions do not tile a tensor of this shape; empty if they do. Throws
// LimitExceeded if they are too irregular to be looked through.
std::string GapOf(const std::vector<Box>& boxes, const Shape& shape, const std::string& path);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_DCP_METADATA_H_
