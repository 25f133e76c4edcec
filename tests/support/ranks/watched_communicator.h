// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_RANKS_WATCHED_COMMUNICATOR_H_
#define SEALPOINT_TESTS_SUPPORT_RANKS_WATCHED_COMMUNICATOR_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/communicator.h"

namespace sealpoint::testing {

// The state that a watched communicator and its duplicates share.
struct Watch {
  std::mutex mutex;
  int exchange_count = 0;
  int reduction_count = 0;
  // The n-th such call from now on (from 1) takes effect and then returns Timeout. So do all calls
  // after it, without taking effect.
  int gathers_left = 0;
  int broadcasts_left = 0;
  int all_gathers_left = 0;
  int all_to_alls_left = 0;
  Status broken{};
  bool was_interrupted = false;
};

// Wraps a communicator, counts exchanges and can break at the end of one call.
class WatchedCommunicator final : public Communicator {
 private:
  template <typename Body>
  auto Locked(const Body& body) const {
    const std::lock_guard lock(watch_->mutex);
    return body(*watch_);
  }
  void Set(int Watch::* left, int nth) {
    Locked([&](Watch& watch) { return watch.*left = nth; });
  }
  Status Broken() const {
    return Locked([](Watch& watch) { return watch.broken; });
  }
  template <typename Call>
  auto Watched(int Watch::* left, const Call& call) -> decltype(call()) {
    if (Status broken = Broken(); !broken.ok()) return broken;
    auto result = call();
    const Status broken = Locked([&](Watch& watch) {
      if (watch.*left > 0 && --(watch.*left) == 0) watch.broken = Status(Code::kTimeout, "broken");
      return watch.broken;
    });
    if (!broken.ok()) return broken;
    return result;
  }

 public:
  explicit WatchedCommunicator(Communicator& inner,
                               std::shared_ptr<Watch> watch = std::make_shared<Watch>())
      : inner_(inner), watch_(std::move(watch)) {}

  int exchange_count() const {
    return Locked([](Watch& watch) { return watch.exchange_count; });
  }
  int reduction_count() const {
    return Locked([](Watch& watch) { return watch.reduction_count; });
  }
  // True if a duplicate was interrupted.
  bool was_interrupted() const {
    return Locked([](Watch& watch) { return watch.was_interrupted; });
  }
  void NoteInterruption() {
    Locked([](Watch& watch) { return watch.was_interrupted = true; });
  }
  // All later calls return Timeout, without taking effect.
  void Break() {
    Locked([](Watch& watch) {
      watch.broken = Status(Code::kTimeout, "broken");
      return true;
    });
  }
  void BreakAfterGather(int nth) { Set(&Watch::gathers_left, nth); }
  void BreakAfterBroadcast(int nth) { Set(&Watch::broadcasts_left, nth); }
  void BreakAfterAllGather(int nth) { Set(&Watch::all_gathers_left, nth); }
  void BreakAfterAllToAll(int nth) { Set(&Watch::all_to_alls_left, nth); }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& host() const override { return inner_.host(); }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_.set_deadline(deadline); }
  Status Barrier() override {
    const Status broken = Broken();
    return broken.ok() ? inner_.Barrier() : broken;
  }
  Status Broadcast(Bytes& bytes, int root) override {
    return Watched(&Watch::broadcasts_left, [&] { return inner_.Broadcast(bytes, root); });
  }
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override {
    return Watched(&Watch::gathers_left, [&] { return inner_.Gather(bytes, root); });
  }
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override {
    return Watched(&Watch::all_gathers_left, [&] { return inner_.AllGather(bytes); });
  }
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override {
    if (Broken().ok()) Locked([](Watch& watch) { return ++watch.exchange_count; });
    return Watched(&Watch::all_to_alls_left, [&] { return inner_.AllToAll(std::move(outgoing)); });
  }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    const Status broken = Broken();
    if (!broken.ok()) return broken;
    Locked([](Watch& watch) { return ++watch.reduction_count; });
    return inner_.AllReduceMax(values);
  }
  Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground() override;

 private:
  Communicator& inner_;
  const std::shared_ptr<Watch> watch_;
};

class WatchedInBackground final : public BackgroundCommunicator {
 public:
  WatchedInBackground(std::unique_ptr<BackgroundCommunicator> inner, std::shared_ptr<Watch> watch)
      : inner_(std::move(inner)), watched_(inner_->communicator(), std::move(watch)) {}

  Communicator& communicator() override { return watched_; }
  bool Progress() override { return inner_->Progress(); }
  bool needs_progress() const override { return inner_->needs_progress(); }
  void Interrupt(const Status& why) override {
    inner_->Interrupt(why);
    watched_.NoteInterruption();
  }

 private:
  const std::unique_ptr<BackgroundCommunicator> inner_;
  WatchedCommunicator watched_;
};

inline Result<std::unique_ptr<BackgroundCommunicator>>
WatchedCommunicator::DuplicateForBackground() {
  auto inner = inner_.DuplicateForBackground();
  if (!inner.ok()) return inner;
  return std::unique_ptr<BackgroundCommunicator>(
      std::make_unique<WatchedInBackground>(std::move(inner).value(), watch_));
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_RANKS_WATCHED_COMMUNICATOR_H_
