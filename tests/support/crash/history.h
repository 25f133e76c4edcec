// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_HISTORY_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_HISTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "tests/support/crash/image.h"

namespace sealpoint::testing {

enum class CrashOpKind : std::uint8_t {
  kMakeDirectory,
  kCreate,
  kWrite,
  kSyncFile,
  kClose,
  kLink,    // the entry `name` appears
  kRename,  // the entry `name` appears and `from` goes, at once
  kRemove,
  kRemoveDirectory,
  kSyncDirectory,
  kPut,       // of an object store: the entry `name` of the root has `data`, at once and durably
  kUpload,    // a request of an upload, without effect on what is there
  kReported,  // no operation: success or failure was reported to the actor's caller
};

// The names of kReported entries.
inline constexpr std::string_view kReportedSuccess = "success";
inline constexpr std::string_view kReportedFailure = "failure";

// A file or directory: its index in CrashHistory::nodes.
using CrashNodeId = int;

// One operation that took effect.
struct CrashOp {
  int actor = 0;
  CrashOpKind kind = CrashOpKind::kReported;
  CrashNodeId directory = 0;  // the one that holds the entry or is synced
  CrashNodeId node = 0;       // the entry's file or directory
  std::string name{};         // the entry's; of a synced directory its path
  std::string from{};         // of kRename
  std::uint64_t offset = 0;   // of kWrite
  Bytes data{};               // of kWrite and kPut
  // A vector clock: for each actor the number of its operations that happened before this one, by
  // the actor's own order and by the collectives between. This operation itself counts.
  std::vector<std::uint32_t> clock{};

  bool is_sync() const {
    return kind == CrashOpKind::kSyncFile || kind == CrashOpKind::kSyncDirectory;
  }
  // "rank 1: sync *.blob". The digits of ids are left out, so that every run gives the same text.
  std::string Describe() const;
};

// A file or directory as it was when the history began; what was made later begins empty.
struct CrashNode {
  bool is_directory = false;
  CrashContentPtr content{};
  std::map<std::string, CrashNodeId, std::less<>> entries{};
};

// Everything that happened to a disk, from which every state after a crash can be made without
// running anything again.
struct CrashHistory {
  std::vector<CrashNode> nodes{};  // 0 is the root
  std::vector<CrashOp> ops{};      // in the order in which they took effect
  int actor_count = 1;
  // In an object store keys are entries of the root, and each operation is durable when it took
  // effect.
  bool is_bucket = false;

  // Positions in `ops` of each actor's operations.
  std::vector<std::vector<std::size_t>> by_actor() const;
  // The n-th (from 1) operation whose description holds `text`; ops.size() where there is none.
  std::size_t Find(const std::string& text, int nth = 1) const;
};

// Names of Sealpoint files without their ids: "*.blob", "step-*".
std::string WithoutIds(std::string_view name);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_HISTORY_H_
