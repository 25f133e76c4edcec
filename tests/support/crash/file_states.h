// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_FILE_STATES_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_FILE_STATES_H_

#include <cstdint>
#include <vector>

#include "sealpoint/bytes.h"
#include "tests/support/crash/history.h"
#include "tests/support/crash/image.h"
#include "tests/support/crash/states.h"

namespace sealpoint::testing {

inline constexpr std::uint64_t kSectorSize = 512;

enum class SectorFate : std::uint8_t { kLost, kWritten, kZeros, kGarbage };

// The possible states of one file of which some writes are durable and the others are not.
class FileStates {
 public:
  FileStates(Bytes durable, const std::vector<const CrashOp*>& pending);

  std::size_t sector_count() const { return sectors_.size(); }
  // Sectors in ascending order of their place; those beyond the end of `fates` are written.
  // `size_bytes` lies between the durable length and that after all writes.
  CrashContentPtr Make(std::uint64_t size_bytes, const std::vector<SectorFate>& fates) const;
  std::uint64_t durable_size() const { return durable_.size(); }
  std::uint64_t whole_size() const { return whole_.size(); }

  // In this order: lost, whole, zeros, garbage; then the states of kFew, then those of kEachSector,
  // as far as `contents` includes them.
  std::vector<CrashContentPtr> Enumerate(CrashContents contents) const;

 private:
  void AddPrefix(std::size_t count, std::vector<CrashContentPtr>& out) const;

  Bytes durable_;
  Bytes whole_;
  std::vector<std::uint64_t> sectors_;  // numbers of those that pending writes touch
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_FILE_STATES_H_
