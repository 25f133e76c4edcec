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

// A writer whose directory is not known yet: what is added stays in staging buffers until Bind.
class StagedWriter final : public StateWriter {
 public:
  // Takes over `reserved_buffer_count` buffers that EngineParts::TryReserve set apart, at least
  // what StagingEstimate says of all that will be added, with a part of that size for each blob if
  // it is not 0.
  StagedWriter(pipeline::EngineParts& engine, std::uint64_t reserved_buffer_count,
               BlobWriterOptions options, std::uint64_t part_size_bytes = 0);
  ~StagedWriter() override;

  // Forgets what was added of these groups, before Bind.
  void Drop(const std::set<std::string>& groups);
  // Names the directory and the attempt: the files are created, and each full buffer is written,
  // or its write failed, when this returns; calls on_progress. The writer that comes back is to be
  // finished, or after an error abandoned. Errors: NotFound, Io, NoSpace; those of a step before.
  struct Bound {
    std::unique_ptr<BlobWriterImpl> writer;
    Status status;
  };
  Bound Bind(std::unique_ptr<Directory> directory, const AttemptId& attempt) &&;

 private:
  Result<OpenedBlob> OpenBlob() override;
  Status PutAside(const OpenedBlob& full) override;

  pipeline::EngineParts& engine_;
  const std::uint64_t part_size_bytes_;
  std::uint64_t reserved_buffer_count_;
  std::vector<std::unique_ptr<BlobStream>> blobs_;  // in order of creation
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_STAGED_WRITER_H_
