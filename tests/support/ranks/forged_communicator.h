// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_RANKS_FORGED_COMMUNICATOR_H_
#define SEALPOINT_TESTS_SUPPORT_RANKS_FORGED_COMMUNICATOR_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/communicator.h"

namespace sealpoint::testing {

// A communicator of one rank whose exchange, and gather, broadcast and reduction if one is given,
// returns something else than was sent.
class ForgedCommunicator final : public Communicator {
 public:
  using Arriving = Result<std::vector<Bytes>>;

  explicit ForgedCommunicator(Arriving exchanged, std::optional<Arriving> gathered = {},
                              std::optional<Bytes> broadcast = {})
      : exchanged_(std::move(exchanged)),
        gathered_(std::move(gathered)),
        broadcast_(std::move(broadcast)) {}

  int rank() const override { return self_->rank(); }
  int size() const override { return self_->size(); }
  const std::string& host() const override { return self_->host(); }
  void set_deadline(std::chrono::milliseconds deadline) override { self_->set_deadline(deadline); }
  Status Barrier() override { return self_->Barrier(); }
  Status Broadcast(Bytes& bytes, int root) override {
    if (broadcast_) bytes = *broadcast_;
    return self_->Broadcast(bytes, root);
  }
  Arriving Gather(ByteSpan bytes, int root) override { return self_->Gather(bytes, root); }
  Arriving AllGather(ByteSpan bytes) override {
    return gathered_ ? *gathered_ : self_->AllGather(bytes);
  }
  Arriving AllToAll(std::vector<Bytes>) override { return exchanged_; }
  // `nth`, counted from 1, returns a number too many.
  void ForgeReduction(int nth) { forged_reduction_ = nth; }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    auto maxima = self_->AllReduceMax(values);
    if (--forged_reduction_ == 0) maxima->push_back(0);
    return maxima;
  }
  bool has_forged_reduction() const { return forged_reduction_ <= 0; }
  void CompareCalls() { compares_calls_ = true; }
  bool calls_are_compared() const override { return compares_calls_; }

 private:
  const std::unique_ptr<Communicator> self_ = SelfCommunicator();
  int forged_reduction_ = 0;
  bool compares_calls_ = false;
  const Arriving exchanged_;
  const std::optional<Arriving> gathered_;
  const std::optional<Bytes> broadcast_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_RANKS_FORGED_COMMUNICATOR_H_
