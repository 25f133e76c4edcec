// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COPY_BLOB_COPY_H_
#define SEALPOINT_LIB_COPY_BLOB_COPY_H_

#include <cstdint>

#include "lib/metadata/metadata.h"
#include "lib/pipeline/byte_meter.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::copy {

// True if the directory, with `info` of the blob's name, has the blob: a file with the pinned
// length and the pinned trailer. Errors: Corrupt (R-STG-03: another file has its name), those of
// the storage.
Result<bool> HasBlob(const Directory& directory, const metadata::BlobPin& pin,
                     const Result<EntryInfo>& info);

struct BlobCopyOptions {
  PublishMethod publish = PublishMethod::kNone;  // of the target
  std::uint64_t piece_size_bytes = 0;            // memory per copy; a multiple of 4 KiB
  Limits limits{};
  pipeline::ByteMeter& meter;  // of the bytes copied; an error ends the copy
};

// The memory of each of `threads` copies that share a budget, as piece_size_bytes.
std::uint64_t PieceSize(std::uint64_t memory_budget_bytes, int threads);

// Copies a blob and verifies every byte against the index on the way (R-STG-02). The copy gets its
// name when it is complete and durable; a directory sync must follow. Returns false if another copy
// got the name first. After an error nothing of this copy remains. Errors: Corrupt, Incomplete,
// Unsupported (a damaged blob), those of both storages.
Result<bool> CopyBlob(const Directory& from, Directory& to, const metadata::BlobPin& pin,
                      const BlobCopyOptions& options);

// The same verification of a blob where it is.
Status VerifyBlob(const Directory& directory, const metadata::BlobPin& pin,
                  const BlobCopyOptions& options);

}  // namespace sealpoint::internal::copy

#endif  // SEALPOINT_LIB_COPY_BLOB_COPY_H_
