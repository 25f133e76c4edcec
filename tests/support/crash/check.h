// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_CHECK_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_CHECK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sealpoint/storage.h"
#include "tests/support/crash/image.h"

namespace sealpoint::testing {

enum class CrashVerdict : std::uint8_t {
  kNothing,      // not there, or without Sealpoint files
  kUncommitted,  // no marker
  kVoid,
  kWhole,    // committed; every byte was read and is the one of its step
  kDamaged,  // incomplete or corrupt: refused
  kWrong,    // wrong bytes were returned, or readers disagree
};

struct CrashFinding {
  CrashVerdict verdict = CrashVerdict::kNothing;
  std::uint64_t step = 0;  // of kWhole
  std::string detail{};
};

// What must be found in the series, whatever else is there.
struct CrashPromise {
  std::vector<std::uint64_t> there{};    // steps that are whole
  std::vector<std::uint64_t> perhaps{};  // steps that are whole or not committed
};

// Opens the checkpoint and reads every byte of it. Success if all are those of its step, Internal
// if a wrong byte was returned, else the reason of the refusal. This is the readers' part of a
// verification and works on a directory that changes meanwhile.
Status ReadEverything(const std::shared_ptr<Storage>& storage, const std::string& directory);

// Checks images with the real readers: Checkpoint::Open and a read of every byte, Verify at full
// level, and Series. A directory with the same content is checked once. So is resuming, for a
// series with the same markers and the same names and lengths of files, because apart from whole
// checkpoints it looks at nothing else.
class CrashChecker {
 public:
  // "" if the promise is kept: no directory is damaged or wrong, the committed ones are those of
  // the promise, and resuming takes the greatest step.
  std::string Check(const CrashImage& image, const CrashPromise& promise);
  // "" if no reader gave out a wrong byte; damage that is refused is fine.
  std::string CheckNothingIsWrong(const CrashImage& image);
  CrashFinding Look(const CrashImage& image, const std::string& directory);

 private:
  std::vector<CrashFinding> LookAtAll(const CrashImage& image);
  const Result<std::uint64_t>& NewestStep(const CrashImage& image);

  std::unordered_map<std::uint64_t, CrashFinding> findings_;
  std::unordered_map<std::uint64_t, Result<std::uint64_t>> newest_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_CHECK_H_
