// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/blob_writer.h"

#include <memory>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/writer/blob_writer_impl.h"

namespace sealpoint {

Result<std::unique_ptr<BlobWriter>> BlobWriter::Create(Engine& engine, const std::string& directory,
                                                       BlobWriterOptions options) {
  internal::EngineParts& parts = engine.parts();
  SEALPOINT_RETURN_IF_ERROR(parts.CheckUsable());
  if (options.size_max_bytes < kMiB) {
    return internal::InvalidArgument("size_max_bytes is ", options.size_max_bytes,
                                     ", at least 1 MiB");
  }
  SEALPOINT_ASSIGN_OR_RETURN(auto opened, parts.storage->OpenDirectory(directory));
  return std::unique_ptr<BlobWriter>(
      std::make_unique<internal::BlobWriterImpl>(parts, std::move(opened), std::move(options)));
}

}  // namespace sealpoint
