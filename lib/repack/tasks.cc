// SPDX-License-Identifier: Apache-2.0
#include "lib/repack/tasks.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/repack/draft.h"
#include "readers/load/checkpoint_impl.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::repack {
namespace {

constexpr std::string_view kOwnKeys = "repack.";
constexpr std::string_view kReservedKeys = "sealpoint.";

Status CheckOptions(const RepackOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(pipeline::CheckThreads("threads", options.threads));
  const int threads = ThreadsOf(options);
  const std::uint64_t least = static_cast<std::uint64_t>(threads) * kMiB;
  if (options.memory_budget_bytes < least) {
    return InvalidArgument("memory_budget_bytes is ", options.memory_budget_bytes,
                           ", expected at least ", least, " with ", threads, " threads");
  }
  if (options.blob_size_max_bytes == 0 || options.blob_size_max_bytes >= kMiB) return {};
  return InvalidArgument("blob_size_max_bytes is ", options.blob_size_max_bytes,
                         ", expected 0 or at least ", kMiB);
}

OpenOptions OpenOptionsOf(const RepackOptions& options, std::size_t source_count) {
  return {.storage = options.from_storage,
          .limits = options.limits,
          .direct_io = true,
          .memory_budget_bytes =
              std::max<std::uint64_t>(64 * kKiB, options.memory_budget_bytes / 4 / source_count)};
}

}  // namespace

Result<Sources> OpenSources(const std::vector<std::string>& paths, const RepackOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(CheckOptions(options));
  const OpenOptions open = OpenOptionsOf(options, paths.size());
  Sources sources;
  for (const std::string& path : paths) {
    SEALPOINT_ASSIGN_OR_RETURN(auto source, Checkpoint::Open(path, open));
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<CopySource> OpenCopySource(const std::string& path, const RepackOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(CheckOptions(options));
  const auto storage = options.from_storage ? options.from_storage : DefaultStorage();
  SEALPOINT_ASSIGN_OR_RETURN(std::optional<container::GivenFiles> draft,
                             ReadDraft(*storage, path, options.limits));
  const OpenOptions open = OpenOptionsOf(options, 1);
  SEALPOINT_ASSIGN_OR_RETURN(
      auto checkpoint,
      draft ? Checkpoint::OpenFrom(path, std::move(draft->marker), std::move(draft->index), open)
            : Checkpoint::Open(path, open));
  return CopySource{.checkpoint = std::move(checkpoint), .is_draft = draft.has_value()};
}

namespace {

// Chunks that a codec did not make smaller are stored without: the tensor's is that of any. Where a
// delta has changes, the bases below it show the codec.
Result<Codec> CodecOf(const Checkpoint& source, std::string_view tensor) {
  Codec found = Codec::kNone;
  const auto* at = &static_cast<const load::CheckpointImpl&>(source);
  for (; at != nullptr; at = at->opened_base()) {
    SEALPOINT_ASSIGN_OR_RETURN(const StoredChunks chunks, at->TensorChunks(tensor));
    for (const auto& [codec, count] : chunks.codecs) {
      if (codec != Codec::kChanges) found = std::max(found, codec);
    }
  }
  return found;
}

}  // namespace

Result<TensorSpec> SpecOf(const Checkpoint& source, const TensorInfo& tensor,
                          const RepackOptions& options) {
  TensorSpec spec{.name = tensor.name,
                  .dtype = tensor.dtype,
                  .shape = tensor.shape,
                  .element_size = tensor.element_size,
                  .chunk_size_bytes = tensor.chunk_size_bytes,
                  .codec_level = options.codec_level,
                  .placement = tensor.placement,
                  .attributes = tensor.attributes};
  if (options.chunk_size_bytes != 0) spec.chunk_size_bytes = options.chunk_size_bytes;
  if (options.codec) {
    spec.codec = *options.codec;
    return spec;
  }
  SEALPOINT_ASSIGN_OR_RETURN(spec.codec, CodecOf(source, tensor.name));
  return spec;
}

ProvenanceList WithOrigin(const ProvenanceList& provenance, const Sources& sources,
                          const std::string& how) {
  ProvenanceList result;
  for (const auto& entry : provenance) {
    const bool is_left_out =
        entry.first.starts_with(kOwnKeys) || entry.first.starts_with(kReservedKeys);
    if (!is_left_out) result.push_back(entry);
  }
  std::string from;
  for (const auto& source : sources) {
    from += from.empty() ? "" : ",";
    from += source->attempt().ToHex();
  }
  result.emplace_back("repack.from", std::move(from));
  result.emplace_back("repack.how", how);
  return result;
}

std::string DescribeChoices(const RepackOptions& options) {
  std::string text;
  if (options.codec) {
    text += StrCat(" codec=", CodecName(*options.codec), " level=", options.codec_level);
  }
  if (options.chunk_size_bytes != 0) text += StrCat(" chunk_size=", options.chunk_size_bytes);
  if (options.blob_count != 0) text += StrCat(" blobs=", options.blob_count);
  if (options.blob_size_max_bytes != 0) text += StrCat(" blob_size=", options.blob_size_max_bytes);
  return text;
}

}  // namespace sealpoint::internal::repack
