// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/fault_kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace sealpoint::testing {
namespace {

constexpr std::string_view kOpNames[] = {"opening of a directory",
                                         "making of directories",
                                         "removal of a directory",
                                         "creation",
                                         "opening",
                                         "read",
                                         "stat",
                                         "list",
                                         "removal",
                                         "publication",
                                         "link",
                                         "directory sync",
                                         "free-space query",
                                         "probe",
                                         "write",
                                         "file sync",
                                         "close",
                                         "preallocation"};
static_assert(std::size(kOpNames) == static_cast<std::size_t>(StorageOp::kPreallocate) + 1);

StorageFault Of(StorageOp op, Code code) { return {.op = op, .error = {code, "injected"}}; }

StorageFault Done(StorageFault fault) {
  fault.takes_effect = true;
  return fault;
}

StorageFault InPart(StorageFault fault) {
  fault.part_size = 100;
  return fault;
}

// Each of them once, and from one call on.
std::vector<StorageFault> OnceAndForEver(const std::vector<StorageFault>& faults) {
  std::vector<StorageFault> all;
  for (StorageFault fault : faults) {
    all.push_back(fault);
    fault.persists = true;
    all.push_back(fault);
  }
  StorageFault dead = Of(StorageOp::kRead, Code::kIo);
  dead.any_op = true;
  dead.persists = true;
  all.push_back(dead);
  return all;
}

bool ChangesAFile(StorageOp op) {
  return op == StorageOp::kWrite || op == StorageOp::kSyncFile || op == StorageOp::kClose;
}

}  // namespace

std::vector<StorageFault> SaveFaults() {
  using Op = StorageOp;
  return OnceAndForEver({
      Of(Op::kOpenDirectory, Code::kIo),
      Of(Op::kOpenDirectory, Code::kNotFound),
      Of(Op::kCreateDirectories, Code::kIo),
      Of(Op::kCreateDirectories, Code::kNoSpace),
      Done(Of(Op::kCreateDirectories, Code::kIo)),
      Of(Op::kRemoveDirectory, Code::kIo),
      Done(Of(Op::kRemoveDirectory, Code::kIo)),
      Of(Op::kCreate, Code::kIo),
      Of(Op::kCreate, Code::kNoSpace),
      Of(Op::kCreate, Code::kAlreadyExists),
      Done(Of(Op::kCreate, Code::kIo)),
      Of(Op::kOpenForRead, Code::kIo),
      Of(Op::kOpenForRead, Code::kNotFound),
      Of(Op::kRead, Code::kIo),
      InPart(Of(Op::kRead, Code::kIncomplete)),
      Of(Op::kStat, Code::kIo),
      Of(Op::kStat, Code::kNotFound),
      Of(Op::kList, Code::kIo),
      Of(Op::kRemove, Code::kIo),
      Of(Op::kRemove, Code::kNotFound),
      Done(Of(Op::kRemove, Code::kIo)),
      Of(Op::kPublish, Code::kIo),
      Of(Op::kPublish, Code::kNoSpace),
      Of(Op::kPublish, Code::kAlreadyExists),
      Done(Of(Op::kPublish, Code::kIo)),
      Done(Of(Op::kPublish, Code::kAlreadyExists)),
      Of(Op::kSyncDirectory, Code::kIo),
      Done(Of(Op::kSyncDirectory, Code::kIo)),
      Of(Op::kFreeSpace, Code::kIo),
      Of(Op::kProbe, Code::kIo),
      Of(Op::kProbe, Code::kNoSpace),
      Of(Op::kWrite, Code::kIo),
      Of(Op::kWrite, Code::kNoSpace),
      InPart(Of(Op::kWrite, Code::kNoSpace)),
      Done(Of(Op::kWrite, Code::kIo)),
      Of(Op::kSyncFile, Code::kIo),
      Of(Op::kSyncFile, Code::kNoSpace),
      Done(Of(Op::kSyncFile, Code::kIo)),
      Of(Op::kClose, Code::kIo),
      Of(Op::kClose, Code::kNoSpace),
      Done(Of(Op::kClose, Code::kIo)),
  });
}

std::vector<StorageFault> ReadFaults() {
  using Op = StorageOp;
  return OnceAndForEver({
      Of(Op::kOpenDirectory, Code::kIo),
      Of(Op::kOpenDirectory, Code::kNotFound),
      Of(Op::kOpenForRead, Code::kIo),
      Of(Op::kOpenForRead, Code::kNotFound),
      Of(Op::kRead, Code::kIo),
      InPart(Of(Op::kRead, Code::kIo)),
      InPart(Of(Op::kRead, Code::kIncomplete)),
      Of(Op::kStat, Code::kIo),
      Of(Op::kStat, Code::kNotFound),
      Of(Op::kList, Code::kIo),
  });
}

std::string Describe(const StorageFault& fault) {
  std::string text = "operation " + std::to_string(fault.nth) + " of the kind \"";
  text.append(fault.any_op ? "any" : kOpNames[static_cast<std::size_t>(fault.op)]);
  text.append("\" fails with ").append(CodeName(fault.error.code()));
  if (fault.takes_effect) text.append(", though it is done");
  if (fault.part_size > 0) text.append(", a part of it done");
  if (fault.persists) text.append(", as do all later ones");
  return text;
}

FaultCounts ForEachPlace(const std::vector<StorageFault>& faults,
                         const std::function<bool(const StorageFault&)>& run) {
  FaultCounts counts;
  std::map<std::pair<StorageOp, bool>, std::uint64_t> places;
  for (StorageFault fault : faults) {
    for (fault.nth = 1;; ++fault.nth) {
      const ::testing::ScopedTrace trace(__FILE__, __LINE__, Describe(fault));
      if (!run(fault) || ::testing::Test::HasFailure()) break;
      ++counts.faults;
      std::uint64_t& most = places[{fault.op, fault.any_op}];
      most = std::max(most, static_cast<std::uint64_t>(fault.nth));
    }
    if (::testing::Test::HasFailure()) break;
  }
  for (const auto& [kind, count] : places) {
    if (!kind.second) counts.operations += count;
  }
  return counts;
}

std::string FindUseAfterFailure(const std::vector<StorageCall>& calls) {
  std::set<std::string> failed;
  std::set<std::string> closed;
  for (const StorageCall& call : calls) {
    if (!ChangesAFile(call.op)) continue;
    const std::string what(kOpNames[static_cast<std::size_t>(call.op)]);
    if (failed.contains(call.name)) return what + " of " + call.name + " after a failure";
    if (closed.contains(call.name)) return what + " of " + call.name + " after its close";
    if (call.code != Code::kOk) failed.insert(call.name);
    if (call.op == StorageOp::kClose) closed.insert(call.name);
  }
  return "";
}

}  // namespace sealpoint::testing
