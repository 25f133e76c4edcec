// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_TORCH_ARCHIVE_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_TORCH_ARCHIVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tools/ckpt-inspect/foreign/files.h"
#include "tools/ckpt-inspect/foreign/pickle.h"

namespace sealpoint::tools {

inline constexpr std::uint64_t kPickleBytesMax = std::uint64_t{1} << 30;

// What torch.save writes, of any version: a pickle and storages. What it took of the budget is
// given back when it is gone.
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
  // Throws Corrupt if the storage is not there, or has another size in bytes.
  virtual void CheckStorage(const std::string& key, std::uint64_t size) const = 0;

 protected:
  // Once all is read.
  void NoteCost() { cost_ = budget().used() - before_; }

 private:
  const std::shared_ptr<const SourceFile> file_;
  const std::uint64_t before_;
  std::uint64_t cost_ = 0;
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_TORCH_ARCHIVE_H_
