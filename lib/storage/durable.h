// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_DURABLE_H_
#define SEALPOINT_LIB_STORAGE_DURABLE_H_

#include <string>
#include <string_view>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// The steps of the commit protocol (spec/commit.md) that concern files only.

namespace sealpoint::internal::storage {

// Error of a publication that may have taken effect (R-CMT-07).
Status WithUnknownOutcome(Status error);

// Unsupported if the file system lacks features that a commit needs: exclusive publication
// (R-CMT-04) or directory sync (R-CMT-05).
Status CheckCapabilities(const Directory& directory, const Capabilities& capabilities);

// Creates a small file, writes, syncs and closes it. `name` carries a random id (R-CMT-14). The
// content is durable afterwards; the name is not, until Directory::Sync.
Status WriteFileDurably(Directory& directory, std::string_view name, ByteSpan content);

// Gives the file `from` with the content `content` the name `to`, durably and exclusively. After an
// error of the publication, `to` is read back. If it does not exist, `from` is removed and `to` is
// read back again, which decides whether the publication took effect (R-CMT-06). Finally `from` is
// removed. Errors: AlreadyExists (R-CMT-01: `to` has another content); the error of the publication
// if `to` does not exist; R-CMT-07 if that could not be determined, or if the directory could not
// be synced after the publication.
Status PublishDurably(Directory& directory, PublishMethod method, std::string_view from,
                      std::string_view to, ByteSpan content);

// Creates the file `name` with `content` exclusively, with Directory::PutIfAbsent. After any error
// it is read back; if it does not exist, it is put twice more. Then `void_content` is put under the
// same condition, which decides the owner of the name (R-CMT-06): a pending request then arrives
// too late. Errors: AlreadyExists (R-CMT-01: `name` has another content); the error of the put, and
// then the name has `void_content`; R-CMT-07 if the outcome could not be determined.
Status PublishByPut(Directory& directory, std::string_view name, ByteSpan content,
                    ByteSpan void_content);

// Creates the file `to` with `content` exclusively and durably. Either uses PublishByPut (a second
// put has the same content), or writes `unpublished`, a name of the caller's own, and publishes it.
// After an error with a known outcome, `unpublished` is removed; an existing file of that name
// belongs to another process and is kept (R-CMT-15). Errors: those of the two.
Status WriteAndPublish(Directory& directory, PublishMethod method, std::string_view unpublished,
                       std::string_view to, ByteSpan content);

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_DURABLE_H_
