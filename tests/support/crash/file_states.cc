// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/file_states.h"

#include <algorithm>
#include <set>

namespace sealpoint::testing {
namespace {

// Differs from what was written in every byte.
constexpr std::byte kGarbageMask{0xa5};

void Apply(const CrashOp& write, Bytes& content) {
  content.resize(std::max<std::size_t>(content.size(), write.offset + write.data.size()));
  std::copy(write.data.begin(), write.data.end(),
            content.begin() + static_cast<std::ptrdiff_t>(write.offset));
}

}  // namespace

FileStates::FileStates(Bytes durable, const std::vector<const CrashOp*>& pending)
    : durable_(std::move(durable)), whole_(durable_) {
  std::set<std::uint64_t> sectors;
  for (const CrashOp* write : pending) {
    Apply(*write, whole_);
    if (write->data.empty()) continue;
    const std::uint64_t last = (write->offset + write->data.size() - 1) / kSectorSize;
    for (std::uint64_t i = write->offset / kSectorSize; i <= last; ++i) sectors.insert(i);
  }
  sectors_.assign(sectors.begin(), sectors.end());
}

CrashContentPtr FileStates::Make(std::uint64_t size_bytes,
                                 const std::vector<SectorFate>& fates) const {
  Bytes bytes = durable_;
  bytes.resize(size_bytes);
  for (std::size_t i = 0; i < sectors_.size(); ++i) {
    const SectorFate fate = i < fates.size() ? fates[i] : SectorFate::kWritten;
    if (fate == SectorFate::kLost) continue;
    const std::uint64_t end = std::min(size_bytes, (sectors_[i] + 1) * kSectorSize);
    for (std::uint64_t at = sectors_[i] * kSectorSize; at < end; ++at) {
      if (fate == SectorFate::kWritten) bytes[at] = whole_[at];
      if (fate == SectorFate::kZeros) bytes[at] = std::byte{0};
      if (fate == SectorFate::kGarbage) bytes[at] = whole_[at] ^ kGarbageMask;
    }
  }
  return std::make_shared<CrashContent>(std::move(bytes));
}

// The first `count` sectors survived: with the length that they need, and with the whole length.
void FileStates::AddPrefix(std::size_t count, std::vector<CrashContentPtr>& out) const {
  std::vector<SectorFate> fates(sectors_.size(), SectorFate::kLost);
  std::fill_n(fates.begin(), count, SectorFate::kWritten);
  const std::uint64_t end = count == 0 ? 0 : (sectors_[count - 1] + 1) * kSectorSize;
  out.push_back(Make(std::clamp<std::uint64_t>(end, durable_.size(), whole_.size()), fates));
  out.push_back(Make(whole_.size(), fates));
}

std::vector<CrashContentPtr> FileStates::Enumerate(CrashContents contents) const {
  const std::size_t count = sectors_.size();
  const std::uint64_t size = whole_.size();
  const auto all = [count](SectorFate fate) { return std::vector<SectorFate>(count, fate); };
  std::vector<CrashContentPtr> out{Make(durable_.size(), all(SectorFate::kLost)), Make(size, {}),
                                   Make(size, all(SectorFate::kZeros)),
                                   Make(size, all(SectorFate::kGarbage))};
  if (contents == CrashContents::kUniform || count == 0) return out;
  const auto with = [&](SectorFate others, std::size_t i, SectorFate fate) {
    std::vector<SectorFate> fates = all(others);
    fates[i] = fate;
    out.push_back(Make(size, fates));
  };
  with(SectorFate::kWritten, 0, SectorFate::kZeros);
  with(SectorFate::kWritten, count - 1, SectorFate::kZeros);
  AddPrefix(count / 2, out);
  if (contents == CrashContents::kFew) return out;
  for (std::size_t i = 0; i < count; ++i) {
    AddPrefix(i, out);
    with(SectorFate::kWritten, i, SectorFate::kZeros);
    with(SectorFate::kWritten, i, SectorFate::kGarbage);
    with(SectorFate::kLost, i, SectorFate::kWritten);
  }
  return out;
}

}  // namespace sealpoint::testing
