// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_BLOB_FILE_H_
#define SEALPOINT_LIB_WRITER_BLOB_FILE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "lib/pipeline/engine_parts.h"
#include "lib/writer/blob_stream.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::writer {

struct ReturnBlobPermit {
  void operator()(pipeline::EngineParts* engine) const {
    engine->ReturnBlobPermit(part_size_bytes);
  }
  std::uint64_t part_size_bytes = 0;
};
// One of EngineParts::TakeBlobPermit, or of ConvertReservation.
using BlobPermit = std::unique_ptr<pipeline::EngineParts, ReturnBlobPermit>;

// A blob that is being written (spec/container.md §5): its file and its contents. The sequence is:
// open, add (stream), End, Finish. After the first error only destruction is allowed.
class BlobFile {
 public:
  // Creates `<blob id>.blob` with a fresh id. `directory` outlives the file. `part_size_bytes`:
  // Storage::part_size_bytes of it.
  static Result<std::unique_ptr<BlobFile>> Create(const BlobStream::Context& context,
                                                  Directory& directory,
                                                  std::uint64_t part_size_bytes,
                                                  const BlobWriterOptions& options);
  // Creates the file of a staged blob and lets its writes begin.
  static Result<std::unique_ptr<BlobFile>> Create(std::unique_ptr<BlobStream> staged,
                                                  BlobPermit permit, Directory& directory,
                                                  const AttemptId& attempt);

  BlobStream& stream() { return *stream_; }

  Status End() { return stream_->End(); }  // see BlobStream
  // Sync, close. InvalidArgument for the same shard twice.
  Result<BlobSummary> Finish(const Limits& limits);

 private:
  BlobFile(BlobPermit permit, std::unique_ptr<WritableFile> file,
           std::unique_ptr<BlobStream> stream)
      : permit_(std::move(permit)), file_(std::move(file)), stream_(std::move(stream)) {}

  BlobPermit permit_;
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<BlobStream> stream_;  // destroyed first: it waits for the writes into the file
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_BLOB_FILE_H_
