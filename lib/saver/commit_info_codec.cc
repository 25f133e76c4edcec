// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/commit_info_codec.h"

#include <array>

#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

using NumberField = std::uint64_t CommitInfo::*;
constexpr std::array<NumberField, 7> kNumbers = {&CommitInfo::sequence,   &CommitInfo::step,
                                                 &CommitInfo::blob_count, &CommitInfo::tensor_count,
                                                 &CommitInfo::raw_bytes,  &CommitInfo::total_bytes,
                                                 &CommitInfo::index_bytes};

}  // namespace

Bytes EncodeCommitInfo(const CommitInfo& info) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(info.directory);
  out.Put(info.attempt);
  out.Put(info.parent);
  for (const NumberField field : kNumbers) out.Put(info.*field);
  return bytes;
}

Result<CommitInfo> DecodeCommitInfo(ByteSpan bytes) {
  WireReader in(bytes);
  CommitInfo info;
  SEALPOINT_ASSIGN_OR_RETURN(info.directory, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(info.attempt, in.Id());
  SEALPOINT_ASSIGN_OR_RETURN(info.parent, in.Id());
  for (const NumberField field : kNumbers) {
    SEALPOINT_ASSIGN_OR_RETURN(info.*field, in.Number());
  }
  return info;
}

}  // namespace sealpoint::internal
