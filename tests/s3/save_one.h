// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_S3_SAVE_ONE_H_
#define SEALPOINT_TESTS_S3_SAVE_ONE_H_

#include <memory>
#include <span>
#include <string>

#include "sealpoint/commit.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {

// A checkpoint of one tensor "w" in one blob.
inline Result<CommitInfo> SaveOne(const std::shared_ptr<Storage>& storage,
                                  const std::string& directory, const CommitOptions& options,
                                  const Bytes& content) {
  const auto engine = SmallEngine(storage, 16, 1 * kMiB);
  if (Status status = storage->CreateDirectories(directory); !status.ok()) return status;
  auto writer = BlobWriter::Create(*engine, directory);
  if (!writer.ok()) return writer.error();
  const TensorSpec spec = ByteTensor("w", content.size());
  Status added =
      (*writer)->Add(spec, Slice(0, content.size()), MemoryView::Host(std::span(content)));
  if (!added.ok()) return added;
  auto summaries = (*writer)->Finish();
  if (!summaries.ok()) return summaries.error();
  return Commit(*storage, directory, options, *summaries);
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_S3_SAVE_ONE_H_
