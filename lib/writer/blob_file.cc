// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/blob_file.h"

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/writer/blob_summary_parts.h"

namespace sealpoint::internal::writer {
namespace {

// After an error it removes the file, unless another attempt owns the name (R-CMT-15).
Result<std::unique_ptr<WritableFile>> CreateFile(pipeline::EngineParts& engine,
                                                 Directory& directory, const BlobId& id) {
  const IoMode mode = engine.options.direct_io ? IoMode::kDirect : IoMode::kBuffered;
  auto file =
      directory.CreateExclusive(format::BlobName(id), {.mode = mode, .is_name_random = true});
  // An error may hide that the file was made; only a name that was taken is another's (R-CMT-15).
  if (!file.ok() && file.error().code() != Code::kAlreadyExists) {
    static_cast<void>(directory.Remove(format::BlobName(id)));
  }
  if (file.ok()) (*file)->ChargePartsTo(engine);
  return file;
}

}  // namespace

Result<std::unique_ptr<BlobFile>> BlobFile::Create(const BlobStream::Context& context,
                                                   Directory& directory,
                                                   std::uint64_t part_size_bytes,
                                                   const BlobWriterOptions& options) {
  SEALPOINT_ASSIGN_OR_RETURN(const format::FileHeader header,
                             BlobStream::MakeHeader(context, options));
  // Before the file: without a permit nothing is left in the directory.
  SEALPOINT_RETURN_IF_ERROR(context.engine.TakeBlobPermit(part_size_bytes, context.drain));
  BlobPermit permit(&context.engine, {part_size_bytes});
  SEALPOINT_ASSIGN_OR_RETURN(auto file, CreateFile(context.engine, directory, BlobId(header.id)));
  auto stream = BlobStream::Create(context, header, *file);
  if (stream.ok()) {
    return std::unique_ptr<BlobFile>(
        new BlobFile(std::move(permit), std::move(file), *std::move(stream)));
  }
  // Closed first: NFS would keep an open file under another name, which nobody removes.
  file.reset();
  static_cast<void>(directory.Remove(format::BlobName(BlobId(header.id))));
  return std::move(stream).error();
}

Result<std::unique_ptr<BlobFile>> BlobFile::Create(std::unique_ptr<BlobStream> staged,
                                                   BlobPermit permit, Directory& directory,
                                                   const AttemptId& attempt) {
  SEALPOINT_ASSIGN_OR_RETURN(auto file, CreateFile(*permit, directory, staged->id()));
  // From here on I/O threads write into the file. Nothing after this may fail before the stream and
  // the file have one owner, which destroys the stream first.
  staged->Bind(*file, attempt);
  return std::unique_ptr<BlobFile>(
      new BlobFile(std::move(permit), std::move(file), std::move(staged)));
}

Result<BlobSummary> BlobFile::Finish(const Limits& limits) {
  // No summary before the blob is durable: whoever holds one may commit it (R-CMT-10).
  // A failed sync is not tried again: the kernel may have dropped the pages that it could not
  // write.
  SEALPOINT_RETURN_IF_ERROR(file_->Sync());
  SEALPOINT_RETURN_IF_ERROR(file_->Close());
  auto summary = DecodeSummary(std::make_shared<const Bytes>(stream_->TakeSummary()), limits);
  if (summary.ok()) return InternalAccess::MakeSummary(*std::move(summary));
  if (summary.error().code() != Code::kCorrupt) return summary.error();
  // What this process just encoded is not damaged: the caller must have given a region twice.
  const Place& place = summary.error().place();
  return InvalidArgument(summary.error().message()).AtTensor(place.tensor).AtObject(place.object);
}

}  // namespace sealpoint::internal::writer
