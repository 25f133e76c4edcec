// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/rate_limit.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

namespace sealpoint::internal::verify {
namespace {

class LimitedFile final : public ReadableFile {
 public:
  LimitedFile(std::unique_ptr<ReadableFile> inner, RateLimit& limit)
      : inner_(std::move(inner)), limit_(limit) {}

  std::uint64_t size_bytes() const override { return inner_->size_bytes(); }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    limit_.Wait(out.size());
    return inner_->ReadAt(offset, out);
  }
  bool is_direct() const override { return inner_->is_direct(); }
  std::optional<int> descriptor() const override { return inner_->descriptor(); }

 private:
  const std::unique_ptr<ReadableFile> inner_;
  RateLimit& limit_;
};

}  // namespace

RateLimit::Clock::time_point RateLimit::Take(std::uint64_t bytes, Clock::time_point now) {
  const std::chrono::duration<double> cost(static_cast<double>(bytes) /
                                           static_cast<double>(bytes_per_second_));
  const std::lock_guard lock(mutex_);
  paid_until_ =
      std::max(paid_until_, now - kCredit) + std::chrono::duration_cast<Clock::duration>(cost);
  return paid_until_;
}

void RateLimit::Wait(std::uint64_t bytes) {
  if (is_on()) std::this_thread::sleep_until(Take(bytes));
}

std::uint64_t RateLimit::ReadSize(std::uint64_t bytes, int threads) const {
  constexpr std::uint64_t kLeast = 64 * kKiB;
  if (!is_on()) return bytes;
  const std::uint64_t share = bytes_per_second_ / (8 * static_cast<std::uint64_t>(threads));
  return std::clamp(share / kLeast * kLeast, kLeast, bytes);
}

std::unique_ptr<ReadableFile> Limited(std::unique_ptr<ReadableFile> file, RateLimit& limit) {
  if (!limit.is_on()) return file;
  return std::make_unique<LimitedFile>(std::move(file), limit);
}

}  // namespace sealpoint::internal::verify
