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

// The error of a publication that may have taken effect all the same (R-CMT-07).
Status WithUnknownOutcome(Status error);

// Unsupported if the file system lacks what a commit needs: exclusive publication (R-CMT-04) or
// directory sync (R-CMT-05).
Status CheckCapabilities(const Directory& directory, const Capabilities& capabilities);

// Creates a small file, writes, syncs and closes it. `name` carries a random id (R-CMT-14). The
// content is durable afterwards; the name is not, until Directory::Sync.
Status WriteFileDurably(Directory& directory, std::string_view name, ByteSpan content);

// Gives the file `from`, whose content is `content`, the name `to`, durably and exclusively. After
// an error of the publication, `to` is read back; if it is not there, `from` is removed and `to` is
// read back again, which decides whether the publication took effect (R-CMT-06). Finally `from` is
// removed. Errors: AlreadyExists (R-CMT-01: `to` has another content); the error of the publication
// if `to` is not there; R-CMT-07 if that could not be found out, or if the directory could not be
// synced after the publication.
Status PublishDurably(Directory& directory, PublishMethod method, std::string_view from,
                      std::string_view to, ByteSpan content);

// Makes the file `name` of `content` exclusively, by Directory::PutIfAbsent. After any error it is
// read back; if it is not there, it is put twice more, and then `void_content` is put under the
// same condition, which settles who has the name (R-CMT-06): a request that is still under way
// comes too late then. Errors: AlreadyExists (R-CMT-01: `name` has another content); the error of
// the put, and then the name has `void_content`; R-CMT-07 if that could not be found out.
Status PublishByPut(Directory& directory, std::string_view name, ByteSpan content,
                    ByteSpan void_content);

// Makes the file `to` of `content` exclusively and durably, by either way: with PublishByPut, whose
// second put has the same content, or written as `unpublished`, a name of the caller's own, and
// published. After an error whose outcome is known, `unpublished` is gone again; one that was there
// before is another's, and stays (R-CMT-15). Errors: those of the two.
Status WriteAndPublish(Directory& directory, PublishMethod method, std::string_view unpublished,
                       std::string_view to, ByteSpan content);

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_DURABLE_H_
