// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_OBJECT_READABLE_FILE_H_
#define SEALPOINT_LIB_STORAGE_OBJECT_READABLE_FILE_H_

#include <cstdint>
#include <memory>

#include "sealpoint/object_store.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

// Bytes read by the first request when an object of unknown length is opened.
inline constexpr std::size_t kObjectFrontBytes = 64 * kKiB;

// An object in the version that was opened: a later object with the same key is refused, if the
// store can detect it.
class ObjectReadableFile final : public ReadableFile {
 public:
  // `front` holds the first bytes, perhaps none.
  ObjectReadableFile(std::shared_ptr<const ObjectStore> store, StoredObject info, Bytes front,
                     IoMode mode);

  std::uint64_t size_bytes() const override { return info_.size_bytes; }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override;
  bool is_direct() const override { return false; }

 private:
  const std::shared_ptr<const ObjectStore> store_;
  const StoredObject info_;
  const Bytes front_;
  const IoMode mode_;
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_OBJECT_READABLE_FILE_H_
