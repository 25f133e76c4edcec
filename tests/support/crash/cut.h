// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_CUT_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_CUT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/crash/file_states.h"
#include "tests/support/crash/history.h"
#include "tests/support/crash/states.h"

namespace sealpoint::testing {

// An entry of a directory and the node that has its name; no node if the name is not there.
using CrashKey = std::pair<CrashNodeId, std::string>;
using CrashNames = std::map<CrashKey, std::optional<CrashNodeId>>;

// A history with what its syncs cover, for making the states of any cut.
class CrashTimeline {
 public:
  CrashTimeline(const CrashHistory& history, const CrashOptions& options);

  const CrashHistory& history() const { return history_; }
  bool IsIn(const CrashCut& cut, std::size_t op) const;
  bool IsDurable(const CrashCut& cut, std::size_t op) const;
  // The states of a file at this cut. States that the same writes leave are made once. Null if all
  // writes are durable.
  const std::vector<CrashContentPtr>* PendingStates(const CrashCut& cut, CrashNodeId node);
  CrashContentPtr WholeContent(const CrashCut& cut, CrashNodeId node);
  FileStates StatesOf(const CrashCut& cut, CrashNodeId node) const;

 private:
  struct Writes {
    std::size_t durable = 0;
    std::size_t done = 0;
  };
  Writes CountWrites(const CrashCut& cut, CrashNodeId node) const;

  const CrashHistory& history_;
  const CrashContents contents_;
  std::vector<std::vector<std::size_t>> covered_by_;  // by operation: syncs that make it durable
  std::map<CrashNodeId, std::vector<std::size_t>> writes_;
  std::map<std::tuple<CrashNodeId, std::size_t, std::size_t>, std::vector<CrashContentPtr>> states_;
  std::map<std::pair<CrashNodeId, std::size_t>, CrashContentPtr> wholes_;
};

// The names at one cut: those that are certain, and the alternatives for the pending ones. One
// alternative of each group, together with the certain names, is a state.
struct CrashNameStates {
  CrashNames certain{};
  std::vector<std::vector<CrashNames>> groups{};
};
CrashNameStates NameStatesOf(const CrashTimeline& timeline, const CrashCut& cut);

// Changes of names at this cut that may be lost, in the order of the run.
std::vector<std::size_t> PendingNames(const CrashTimeline& timeline, const CrashCut& cut);
// The names after all durable changes and those of `pending` for which `survives` says so.
CrashNames ApplyNames(const CrashTimeline& timeline, const CrashCut& cut,
                      const std::vector<std::size_t>& surviving);

// The files that can be reached from the root, and the folders of an image without them.
struct CrashFileRef {
  std::string folder{};
  std::string name{};
  CrashNodeId node = 0;
  std::uint64_t name_hash = 0;  // of folder and name
};
struct CrashTree {
  std::vector<std::string> folders{};
  std::vector<CrashFileRef> files{};
  std::uint64_t folders_hash = 0;
};
CrashTree TreeOf(const CrashHistory& history, const CrashNames& names);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_CUT_H_
