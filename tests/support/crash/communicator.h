// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_COMMUNICATOR_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_COMMUNICATOR_H_

#include <numeric>
#include <string>
#include <vector>

#include "sealpoint/communicator.h"
#include "tests/support/crash/disk.h"

namespace sealpoint::testing {

// Wraps a communicator and records on a crash disk which operations a collective orders before
// which. Only what the collective guarantees counts: a broadcast orders the root before the others
// and nothing else, a gather the others before the root.
class CrashCommunicator final : public Communicator {
 public:
  // The ranks are the actors of the disk.
  CrashCommunicator(Communicator& inner, CrashDisk& disk) : inner_(inner), disk_(disk) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& host() const override { return inner_.host(); }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_.set_deadline(deadline); }

  Status Barrier() override {
    return Run(All(), [&] { return inner_.Barrier(); });
  }
  Status Broadcast(Bytes& bytes, int root) override {
    return Run({root}, [&] { return inner_.Broadcast(bytes, root); });
  }
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override {
    const auto sources = rank() == root ? All() : std::vector<int>();
    return Run(sources, [&] { return inner_.Gather(bytes, root); });
  }
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override {
    return Run(All(), [&] { return inner_.AllGather(bytes); });
  }
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override {
    return Run(All(), [&] { return inner_.AllToAll(std::move(outgoing)); });
  }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    return Run(All(), [&] { return inner_.AllReduceMax(values); });
  }

 private:
  std::vector<int> All() const {
    std::vector<int> ranks(static_cast<std::size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  template <typename Call>
  auto Run(const std::vector<int>& sources, const Call& call) -> decltype(call()) {
    const std::size_t number = disk_.EnterCollective(rank());
    auto result = call();
    disk_.LeaveCollective(rank(), number, sources);
    return result;
  }

  Communicator& inner_;
  CrashDisk& disk_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_COMMUNICATOR_H_
