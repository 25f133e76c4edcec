// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/blob_file.h"

#include <utility>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/writer/blob_summary_parts.h"

namespace sealpoint::internal {
namespace {

StreamTarget TargetOf(const WritableFile* file) {
  if (file == nullptr) return StreamTarget::kNone;
  return file->is_direct() ? StreamTarget::kDirectFile : StreamTarget::kBufferedFile;
}

}  // namespace

Result<std::unique_ptr<BlobFile>> BlobFile::Create(const Context& context, Directory& directory,
                                                   const AttemptId& attempt, std::uint64_t step) {
  FileHeader header{
      .kind = FileKind::kBlob, .features = {}, .id = {}, .attempt = attempt, .step = step};
  SEALPOINT_ASSIGN_OR_RETURN(header.id, BlobId::Random());
  SEALPOINT_RETURN_IF_ERROR(context.engine.TakeBlobSlot());
  auto file = CreateFile(context.engine, directory, header.id);
  if (!file.ok()) {
    context.engine.ReturnBlobSlot();
    return std::move(file).error();
  }
  std::unique_ptr<BlobFile> blob(new BlobFile(context, header, *std::move(file)));
  blob->has_slot_ = true;
  blob->stream_.Bind(*blob->file_);
  const Status begun = blob->stream_.Append(blob->layout_.header());
  if (begun.ok()) return blob;
  blob.reset();
  static_cast<void>(directory.Remove(BlobName(header.id)));
  return begun;
}

Result<std::unique_ptr<WritableFile>> BlobFile::CreateFile(EngineParts& engine,
                                                           Directory& directory, const BlobId& id) {
  const IoMode mode = engine.options.direct_io ? IoMode::kDirect : IoMode::kBuffered;
  auto file = directory.CreateExclusive(BlobName(id), mode);
  // An error may hide that the file was made; only a name that was taken is another's (R-CMT-15).
  if (!file.ok() && file.error().code() != Code::kAlreadyExists) {
    static_cast<void>(directory.Remove(BlobName(id)));
  }
  return file;
}

Result<std::unique_ptr<BlobFile>> BlobFile::CreateHeld(const Context& context, std::uint64_t step) {
  FileHeader header{.kind = FileKind::kBlob, .features = {}, .id = {}, .attempt = {}, .step = step};
  SEALPOINT_ASSIGN_OR_RETURN(header.id, BlobId::Random());
  std::unique_ptr<BlobFile> blob(new BlobFile(context, header, nullptr));
  SEALPOINT_RETURN_IF_ERROR(blob->stream_.Append(blob->layout_.header()));
  return blob;
}

Status BlobFile::Bind(Directory& directory, const AttemptId& attempt) {
  has_slot_ = true;
  layout_.SetAttempt(attempt);
  SEALPOINT_ASSIGN_OR_RETURN(file_, CreateFile(engine_, directory, id()));
  intakes_.BeforeWrites();
  // The first buffer cannot have been written yet: the stream had no file.
  stream_.ReplaceFront(layout_.header());
  stream_.Bind(*file_);
  return {};
}

BlobFile::BlobFile(const Context& context, const FileHeader& header,
                   std::unique_ptr<WritableFile> file)
    : engine_(context.engine),
      layout_(header, context.tensors),
      file_(std::move(file)),
      stream_(*engine_.pool, *engine_.io),
      intakes_({.engine = engine_,
                .copies = context.copies,
                .stream = stream_,
                .chunks = layout_,
                .checks_copies = context.checks_copies},
               TargetOf(file_.get())) {}

BlobFile::~BlobFile() {
  if (has_slot_) engine_.ReturnBlobSlot();
}

Status BlobFile::AddShard(std::uint32_t tensor, const Region& region, SourceReader& source,
                          const ShardEncoding& encoding) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint32_t first_record, AppendShard(source, encoding));
  layout_.DeclareShard(tensor, region, first_record);
  return {};
}

Status BlobFile::AddObject(std::string_view name, std::string_view media_type, SourceReader source,
                           const ShardEncoding& encoding) {
  std::uint32_t first_record = 0;
  if (encoding.raw_size > 0) {
    SEALPOINT_ASSIGN_OR_RETURN(first_record, AppendShard(source, encoding));
  }
  layout_.DeclareObject(name, media_type, encoding, first_record);
  return {};
}

Result<std::uint32_t> BlobFile::AppendShard(SourceReader& source, const ShardEncoding& encoding) {
  SEALPOINT_ASSIGN_OR_RETURN(const BlobLayout::ShardPlace place, layout_.AddShard(encoding));
  SEALPOINT_RETURN_IF_ERROR(stream_.AppendZeros(place.padding));
  SEALPOINT_RETURN_IF_ERROR(intakes_.Choose(source, encoding).Begin(source, encoding));
  return place.first_record;
}

Status BlobFile::AppendTail() {
  SEALPOINT_RETURN_IF_ERROR(intakes_.Complete());
  SEALPOINT_RETURN_IF_ERROR(layout_.End([this](std::uint64_t zeros, ByteSpan bytes) {
    const Status padded = stream_.AppendZeros(zeros);
    return padded.ok() ? stream_.Append(bytes) : padded;
  }));
  return stream_.Flush();
}

Result<BlobSummary> BlobFile::Finish(const Limits& limits) {
  // No summary before the blob is durable: whoever holds one may commit it (R-CMT-10).
  SEALPOINT_RETURN_IF_ERROR(file_->Sync());
  SEALPOINT_RETURN_IF_ERROR(file_->Close());
  auto summary = DecodeSummary(std::make_shared<const Bytes>(layout_.TakeSummary()), limits);
  if (summary.ok()) return InternalAccess::MakeSummary(*std::move(summary));
  if (summary.error().code() != Code::kCorrupt) return summary.error();
  // What this process just encoded is not damaged: the caller must have given a region twice.
  const Place& place = summary.error().place();
  return InvalidArgument(summary.error().message()).AtTensor(place.tensor).AtObject(place.object);
}

}  // namespace sealpoint::internal
