// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/blob_writer.h"

#include <memory>
#include <utility>

#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/writer/blob_writer_impl.h"

namespace sealpoint {

Result<std::unique_ptr<BlobWriter>> BlobWriter::Create(Engine& engine, const std::string& directory,
                                                       BlobWriterOptions options) {
  SEALPOINT_ASSIGN_OR_RETURN(
      auto writer, internal::writer::BlobWriterImpl::Create(InternalAccess::PartsOf(engine),
                                                            directory, std::move(options)));
  return std::unique_ptr<BlobWriter>(std::move(writer));
}

}  // namespace sealpoint
