// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_DURABLE_H_
#define SEALPOINT_LIB_STORAGE_DURABLE_H_

#include <string>
#include <string_view>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// The steps of the commit protocol (spec/commit.md) that are about files alone.

namespace sealpoint::internal {

// The error of a publication that may have taken effect all the same (R-CMT-07).
Status WithUnknownOutcome(Status error);

// Unsupported where the file system lacks what a commit needs: exclusive publication, directory
// sync (R-CMT-04, R-CMT-05).
Status CheckCapabilities(const Directory& directory, const Capabilities& capabilities);

// Creates a small file, writes, syncs and closes it. Its name is durable after Directory::Sync.
Status WriteFileDurably(Directory& directory, std::string_view name, ByteSpan content);

// Gives the file `from`, whose content is `content`, the name `to`, durably and exclusively: after
// an error of the publication `to` is read back, and again once `from` is removed where it was not
// there: that completes whether it took effect (R-CMT-06). Afterwards `from` is removed. Errors:
// AlreadyExists (R-CMT-01: `to` has another content); the error of the publication where `to` is
// not there; R-CMT-07 where that could not be completed, or where the directory could not be synced
// after the publication.
Status PublishDurably(Directory& directory, PublishMethod method, std::string_view from,
                      std::string_view to, ByteSpan content);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_STORAGE_DURABLE_H_
