// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_STAGED_WRITER_H_
#define SEALPOINT_LIB_WRITER_STAGED_WRITER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/writer/blob_writer_impl.h"
#include "lib/writer/state_writer.h"
#include "sealpoint/id.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::writer {

// A writer without a directory: added data stays in staging buffers until Bind.
class StagedWriter final : public StateWriter {
 public:
  // Takes over `reserved_buffer_count` buffers reserved by EngineParts::TryReserve. They must be at
  // least the StagingEstimate of all data to add, with one part of the given size per blob if it is
  // not 0.
  StagedWriter(pipeline::EngineParts& engine, std::uint64_t reserved_buffer_count,
               BlobWriterOptions options, std::uint64_t part_size_bytes = 0);
  ~StagedWriter() override;

  // Discards the data of these groups, before Bind.
  void Drop(const std::set<std::string>& groups);
  // Sets the directory and the attempt. When it returns, the files are created and each full buffer
  // is written or its write has failed; calls on_bytes. The returned writer must be finished, or
  // after an error abandoned. Errors: NotFound, Io, NoSpace; those of an earlier step.
  struct Bound {
    std::unique_ptr<BlobWriterImpl> writer;
    Status status;
  };
  Bound Bind(std::unique_ptr<Directory> directory, const AttemptId& attempt) &&;

 private:
  Result<OpenedBlob> OpenBlob() override;
  Status CloseFull(const OpenedBlob& full) override;

  pipeline::EngineParts& engine_;
  const std::uint64_t part_size_bytes_;
  std::uint64_t reserved_buffer_count_;
  std::vector<std::unique_ptr<BlobStream>> blobs_;  // in order of creation
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_STAGED_WRITER_H_
