// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_PINNED_BASE_H_
#define SEALPOINT_LIB_WRITER_PINNED_BASE_H_

#include <string>

#include "lib/container/open_checkpoint.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::writer {

// The base of a delta that is being committed (spec/delta.md), by the committer alone.
class PinnedBase {
 public:
  // Opens the base and the bases below it, and checks their files. Errors: those of a reader;
  // InvalidArgument (its deltas would pass the greatest depth).
  static Result<PinnedBase> Open(const Storage& storage, const std::string& path,
                                 const Limits& limits);

  const BaseRef& ref() const { return ref_; }
  // InvalidArgument unless the base has each tensor of `index`, with the same dtype and shape.
  Status CheckTensors(const metadata::Metadata& index) const;
  Status Pin(const std::string& delta_directory) const {
    return container::PinBase(*files_.directory, delta_directory);
  }
  Status CheckStays() const { return container::CheckBaseStays(*files_.directory); }

 private:
  PinnedBase(container::CommittedFiles files, BaseRef ref) : files_(std::move(files)), ref_(ref) {}

  container::CommittedFiles files_;
  BaseRef ref_;
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_PINNED_BASE_H_
