// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_ARCHIVE_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_ARCHIVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/pickle.h"
#include "sealpoint/interop.h"

namespace sealpoint::internal::foreign {

// A tensor within a storage: begin and strides in elements.
struct StoredTensor {
  std::string key;
  std::uint64_t storage_size = 0;  // in bytes
  DType dtype = DType::kNone;
  std::uint64_t begin = 0;
  Shape shape;
  Shape strides;
  bool is_conjugate = false;  // the conjugate of the elements is stored, or their negative
  bool is_negative = false;
  friend auto operator<=>(const StoredTensor&, const StoredTensor&) = default;
};

inline constexpr std::uint64_t kPickleBytesMax = std::uint64_t{1} << 30;

// A torch.save file of any version: a pickle and storages. It returns its share of the budget when
// it is destroyed.
class TorchArchive {
 public:
  explicit TorchArchive(std::shared_ptr<const SourceFile> file)
      : file_(std::move(file)), before_(file_->budget().used()) {}
  virtual ~TorchArchive() { budget().Release(cost_); }
  TorchArchive(const TorchArchive&) = delete;
  TorchArchive& operator=(const TorchArchive&) = delete;

  const SourceFile& file() const { return *file_; }
  Budget& budget() const { return file_->budget(); }
  const std::string& path() const { return file_->path(); }
  virtual const Pickled& root() const = 0;
  virtual std::uint64_t pickle_begin() const = 0;
  virtual std::uint64_t pickle_size() const = 0;
  // Location of its elements: the whole tensor is one part. Throws Corrupt if the storage does not
  // exist or has another size in bytes.
  ForeignPart PartOf(const StoredTensor& tensor) const;

 protected:
  // Fills in the entry.
  virtual void FindStorage(const std::string& key, std::uint64_t size, ForeignPart& part) const = 0;
  // Once all is read.
  void NoteCost() { cost_ = budget().used() - before_; }

 private:
  const std::shared_ptr<const SourceFile> file_;
  const std::uint64_t before_;
  std::uint64_t cost_ = 0;
};

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_ARCHIVE_H_
