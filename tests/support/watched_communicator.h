// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_WATCHED_COMMUNICATOR_H_
#define SEALPOINT_TESTS_SUPPORT_WATCHED_COMMUNICATOR_H_

#include <string>
#include <vector>

#include "sealpoint/communicator.h"

namespace sealpoint::testing {

// Another communicator that counts exchanges and can break at the end of one call.
class WatchedCommunicator final : public Communicator {
 public:
  explicit WatchedCommunicator(Communicator& inner) : inner_(inner) {}

  int exchange_count() const { return exchange_count_; }
  // The n-th such call from now on (from 1) takes effect and then returns Timeout; so do all calls
  // behind it, without taking effect.
  void BreakAfterGather(int nth) { gathers_left_ = nth; }
  void BreakAfterBroadcast(int nth) { broadcasts_left_ = nth; }
  void BreakAfterAllGather(int nth) { all_gathers_left_ = nth; }
  void BreakAfterAllToAll(int nth) { all_to_alls_left_ = nth; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& host() const override { return inner_.host(); }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_.set_deadline(deadline); }
  Status Barrier() override { return broken_.ok() ? inner_.Barrier() : broken_; }
  Status Broadcast(Bytes& bytes, int root) override {
    if (!broken_.ok()) return broken_;
    Status status = inner_.Broadcast(bytes, root);
    CountDown(broadcasts_left_);
    return broken_.ok() ? status : broken_;
  }
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override {
    if (!broken_.ok()) return broken_;
    auto gathered = inner_.Gather(bytes, root);
    CountDown(gathers_left_);
    if (!broken_.ok()) return broken_;
    return gathered;
  }
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override {
    if (!broken_.ok()) return broken_;
    auto gathered = inner_.AllGather(bytes);
    CountDown(all_gathers_left_);
    if (!broken_.ok()) return broken_;
    return gathered;
  }
  Result<std::vector<Bytes>> AllToAll(const std::vector<Bytes>& outgoing) override {
    if (!broken_.ok()) return broken_;
    ++exchange_count_;
    auto incoming = inner_.AllToAll(outgoing);
    CountDown(all_to_alls_left_);
    if (!broken_.ok()) return broken_;
    return incoming;
  }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    if (!broken_.ok()) return broken_;
    return inner_.AllReduceMax(values);
  }

 private:
  void CountDown(int& left) {
    if (left > 0 && --left == 0) broken_ = Status(Code::kTimeout, "broken");
  }

  Communicator& inner_;
  int exchange_count_ = 0;
  int gathers_left_ = 0;
  int broadcasts_left_ = 0;
  int all_gathers_left_ = 0;
  int all_to_alls_left_ = 0;
  Status broken_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_WATCHED_COMMUNICATOR_H_
