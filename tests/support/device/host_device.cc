// SPDX-License-Identifier: Apache-2.0
#include "tests/support/device/host_device.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/mix.h"
#include "sealpoint/digest.h"

namespace sealpoint::testing {

namespace device = internal::device;

using device::CopyQueue;
using device::DeviceChunks;
using device::DeviceRows;
using device::MutableDeviceRows;
using internal::MakeError;

namespace {

std::uint64_t Next(std::uint64_t& state) {
  const std::uint64_t drawn = internal::Mix(state);
  state += internal::kMixIncrement;
  return drawn;
}

void Linger(std::uint64_t& random, std::chrono::microseconds max) {
  if (max.count() <= 0) return;
  const auto range = static_cast<std::uint64_t>(max.count()) + 1;
  std::this_thread::sleep_for(std::chrono::microseconds(Next(random) % range));
}

Status DeviceError(int device, std::string_view what) {
  return MakeError(Code::kDevice, "stand-in device ", device, ": ", what);
}

}  // namespace

HostStream::HostStream(std::uint64_t seed, std::chrono::microseconds delay_max)
    : random_(seed), delay_max_(delay_max) {}

void HostStream::Run(std::function<void()> work) {
  // Only the worker draws.
  worker_.Push([this, work = std::move(work)] {
    Linger(random_, delay_max_);
    work();
  });
}

// What the queues share with the runtime.
struct HostDevice::State {
  explicit State(HostDeviceOptions given) : options(given), random(given.seed) {}

  const HostDeviceOptions options;
  const pid_t owner = getpid();
  const std::shared_ptr<DeviceAddresses> addresses = std::make_shared<DeviceAddresses>();
  const std::shared_ptr<HostDeviceFiles> files = std::make_shared<HostDeviceFiles>(addresses);

  mutable std::mutex mutex;
  std::condition_variable resumed;
  std::uint64_t random;
  HostDeviceCounters counters;
  std::map<const std::byte*, std::uint64_t> pinned;  // address and size
  std::set<int> lost;
  std::uint64_t fail_queued = 0;  // copies until then; 0: none
  std::uint64_t fail_run = 0;
  std::uint64_t fail_mark = 0;
  std::uint64_t flip = 0;
  bool refuses_pins = false;
  bool paused = false;
  std::map<int, std::chrono::steady_clock::time_point> link_free_at;
  std::map<int, std::unique_ptr<HostStream>> default_streams;

  std::uint64_t Draw() {
    const std::lock_guard lock(mutex);
    return Next(random);
  }
  Status Check(int device) const;
  bool IsPinned(ByteSpan host) const;
  void OccupyLink(int device, std::uint64_t size_bytes, bool is_last);
  void WaitWhilePaused() {
    std::unique_lock lock(mutex);
    resumed.wait(lock, [this] { return !paused; });
  }
};

Status HostDevice::State::Check(int device) const {
  if (getpid() != owner) return DeviceError(device, "used in a child after fork");
  if (device < 0 || device >= options.device_count) return DeviceError(device, "no such device");
  const std::lock_guard lock(mutex);
  return lost.contains(device) ? DeviceError(device, "lost") : Status();
}

// Precondition: mutex is held.
bool HostDevice::State::IsPinned(ByteSpan host) const {
  auto range = pinned.upper_bound(host.data());
  if (range == pinned.begin()) return false;
  --range;
  const auto offset = static_cast<std::uint64_t>(host.data() - range->first);
  return offset <= range->second && host.size() <= range->second - offset;
}

// Sleeps are late by a tenth of a millisecond, so short ones are saved up.
void HostDevice::State::OccupyLink(int device, std::uint64_t size_bytes, bool is_last) {
  if (options.link_bytes_per_second <= 0) return;
  const std::chrono::duration<double> seconds(static_cast<double>(size_bytes) /
                                              options.link_bytes_per_second);
  const auto now = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex);
  auto& free_at = link_free_at[device];
  free_at = std::max(free_at, now) +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(seconds);
  const auto until = free_at;
  lock.unlock();
  if (is_last || until - now > std::chrono::milliseconds(1)) std::this_thread::sleep_until(until);
}

class HostDevice::Queue final : public CopyQueue {
 public:
  Queue(std::shared_ptr<State> state, int device)
      : state_(std::move(state)), device_(device), random_(state_->Draw()) {}

  int device() const override { return device_; }
  Status WaitFor(void* callers_stream) override;
  Status CopyToHost(const DeviceRows& from, MutableByteSpan to) override;
  Status CopyToDevice(ByteSpan from, const MutableDeviceRows& to) override;
  Status QueueDigests(const DeviceChunks& chunks, std::span<Digest> to) override;
  Status QueueFingerprint(const internal::fingerprint::Part& part, const std::byte* data,
                          internal::fingerprint::Pair& to) override;
  Result<std::uint64_t> Mark() override;
  Result<bool> IsDone(std::uint64_t ticket) override;
  Status Wait(std::uint64_t ticket) override;

 private:
  // Aborts if two threads queue at once.
  class Turn {
   public:
    explicit Turn(std::atomic<bool>& taken) : taken_(taken) {
      SEALPOINT_CHECK(!taken_.exchange(true));
    }
    ~Turn() { taken_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::atomic<bool>& taken_;
  };
  // One contiguous part of a copy.
  struct Piece {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t size = 0;
  };
  struct Copy {
    std::vector<Piece> pieces{};
    std::uint64_t size_bytes = 0;
    bool to_host = false;
    bool fails = false;
    bool flips = false;
    bool pageable = false;
  };

  template <typename Byte>
  Result<std::vector<MutableByteSpan>> FindRows(const device::BasicDeviceRows<Byte>& rows) const;
  Result<Copy> Begin(ByteSpan host, bool to_host);
  void RunCopy(Copy& copy);
  void Push(std::function<void()> operation);
  Status Outcome(std::uint64_t ticket) const;
  void NoteFailure(std::string_view what);

  const std::shared_ptr<State> state_;
  const int device_;
  std::uint64_t random_;  // drawn from by the worker alone
  std::atomic<bool> queueing_ = false;

  mutable std::mutex mutex_;
  std::uint64_t running_ = 0;    // position of the operation that runs
  std::uint64_t failed_at_ = 0;  // position; 0: none failed
  Status failure_;

  SerialWorker worker_;  // last: joined first
};

// Runs `operation` late, and not after a failure, as a device does.
void HostDevice::Queue::Push(std::function<void()> operation) {
  worker_.Push([this, operation = std::move(operation)] {
    state_->WaitWhilePaused();
    Linger(random_, state_->options.delay_max);
    bool broken = false;
    {
      const std::lock_guard lock(mutex_);
      ++running_;
      broken = failed_at_ != 0;
    }
    if (broken) return;
    if (!state_->Check(device_).ok()) return NoteFailure("lost");
    operation();
  });
}

void HostDevice::Queue::NoteFailure(std::string_view what) {
  const std::lock_guard lock(mutex_);
  failed_at_ = running_;
  failure_ = DeviceError(device_, what);
}

Status HostDevice::Queue::WaitFor(void* callers_stream) {
  const Turn turn(queueing_);
  SEALPOINT_RETURN_IF_ERROR(state_->Check(device_));
  const auto* stream = static_cast<const HostStream*>(callers_stream);
  if (stream == nullptr) {
    const std::lock_guard lock(state_->mutex);
    stream = state_->default_streams.at(device_).get();
  }
  const std::uint64_t position = stream->worker().pushed();
  Push([stream, position] { stream->worker().WaitFor(position); });
  return Status();
}

template <typename Byte>
Result<std::vector<MutableByteSpan>> HostDevice::Queue::FindRows(
    const device::BasicDeviceRows<Byte>& rows) const {
  std::vector<MutableByteSpan> found;
  if (rows.size_bytes() == 0) return found;
  for (std::uint64_t r = 0; r < rows.row_count; ++r) {
    const std::byte* const row = rows.data + static_cast<std::int64_t>(r) * rows.pitch_bytes;
    const auto contents = state_->addresses->Find(device_, row, rows.row_bytes);
    if (!contents) return DeviceError(device_, "not memory of the device");
    found.push_back(*contents);
  }
  return found;
}

Result<HostDevice::Queue::Copy> HostDevice::Queue::Begin(ByteSpan host, bool to_host) {
  SEALPOINT_RETURN_IF_ERROR(state_->Check(device_));
  Copy copy{.size_bytes = host.size(), .to_host = to_host};
  const std::lock_guard lock(state_->mutex);
  ++state_->counters.copies;
  if (state_->fail_queued != 0 && --state_->fail_queued == 0) {
    return DeviceError(device_, "this copy was to fail when queued");
  }
  copy.fails = state_->fail_run != 0 && --state_->fail_run == 0;
  copy.flips = state_->flip != 0 && --state_->flip == 0;
  copy.pageable = !state_->IsPinned(host);
  return copy;
}

Status HostDevice::Queue::CopyToHost(const DeviceRows& from, MutableByteSpan to) {
  const Turn turn(queueing_);
  SEALPOINT_CHECK(to.size() == from.size_bytes());
  SEALPOINT_ASSIGN_OR_RETURN(Copy copy, Begin(to, true));
  SEALPOINT_ASSIGN_OR_RETURN(const auto rows, FindRows(from));
  for (const MutableByteSpan row : rows) {
    copy.pieces.push_back({row.data(), to.data(), row.size()});
    to = to.subspan(row.size());
  }
  Push([this, copy = std::move(copy)]() mutable { RunCopy(copy); });
  return Status();
}

Status HostDevice::Queue::CopyToDevice(ByteSpan from, const MutableDeviceRows& to) {
  const Turn turn(queueing_);
  SEALPOINT_CHECK(from.size() == to.size_bytes());
  SEALPOINT_ASSIGN_OR_RETURN(Copy copy, Begin(from, false));
  SEALPOINT_ASSIGN_OR_RETURN(const auto rows, FindRows(to));
  for (const MutableByteSpan row : rows) {
    copy.pieces.push_back({from.data(), row.data(), row.size()});
    from = from.subspan(row.size());
  }
  Push([this, copy = std::move(copy)]() mutable { RunCopy(copy); });
  return Status();
}

// The bytes arrive in any order; some of them before a copy fails.
void HostDevice::Queue::RunCopy(Copy& copy) {
  std::vector<Piece> cut;
  for (const Piece& piece : copy.pieces) {
    for (std::size_t at = 0; at < piece.size;) {
      const std::size_t size = std::min(piece.size - at, state_->options.piece_bytes_max);
      cut.push_back({piece.from + at, piece.to + at, size});
      at += size;
    }
  }
  for (std::size_t i = cut.size(); i > 1; --i) std::swap(cut[i - 1], cut[Next(random_) % i]);
  if (copy.fails) cut.resize(cut.size() / 2);
  for (std::size_t i = 0; i < cut.size(); ++i) {
    state_->OccupyLink(device_, cut[i].size, i + 1 == cut.size());
    std::memcpy(cut[i].to, cut[i].from, cut[i].size);
    if (i % 8 == 7) Linger(random_, state_->options.delay_max);
  }
  if (copy.flips && !cut.empty()) *cut.front().to ^= std::byte{4};
  if (copy.fails) return NoteFailure("this copy was to fail when run");
  const std::lock_guard lock(state_->mutex);
  HostDeviceCounters& counters = state_->counters;
  (copy.to_host ? counters.bytes_to_host : counters.bytes_to_device) += copy.size_bytes;
  if (copy.pageable) counters.bytes_pageable += copy.size_bytes;
}

Status HostDevice::Queue::QueueDigests(const DeviceChunks& chunks, std::span<Digest> to) {
  const Turn turn(queueing_);
  SEALPOINT_CHECK(chunks.chunk_size_bytes != 0 && to.size() == chunks.count());
  SEALPOINT_RETURN_IF_ERROR(state_->Check(device_));
  if (!state_->options.has_kernels) return DeviceError(device_, "has no kernels");
  const auto contents = state_->addresses->Find(device_, chunks.data, chunks.size_bytes);
  if (!contents) return DeviceError(device_, "not memory of the device");
  Push([this, contents = *contents, size = chunks.chunk_size_bytes, to] {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const MutableByteSpan rest = contents.subspan(i * size);
      to[i] = ComputeDigest(rest.first(std::min<std::size_t>(size, rest.size())));
    }
    const std::lock_guard lock(state_->mutex);
    state_->counters.digests += to.size();
  });
  return Status();
}

Status HostDevice::Queue::QueueFingerprint(const internal::fingerprint::Part& part,
                                           const std::byte* data, internal::fingerprint::Pair& to) {
  const Turn turn(queueing_);
  SEALPOINT_RETURN_IF_ERROR(state_->Check(device_));
  if (!state_->options.has_kernels) return DeviceError(device_, "has no kernels");
  if (!state_->options.has_memory_for_kernels) return DeviceError(device_, "out of memory");
  const auto contents = state_->addresses->Find(device_, data, part.region().run.size());
  if (!contents) return DeviceError(device_, "not memory of the device");
  Push([this, contents = *contents, &part, &to] {
    to = part.Of(0, contents).values();
    const std::lock_guard lock(state_->mutex);
    ++state_->counters.fingerprints;
  });
  return Status();
}

Result<std::uint64_t> HostDevice::Queue::Mark() {
  const Turn turn(queueing_);
  SEALPOINT_RETURN_IF_ERROR(state_->Check(device_));
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->counters.marks;
    if (state_->fail_mark != 0 && --state_->fail_mark == 0) {
      return DeviceError(device_, "this ticket was to fail");
    }
  }
  Push([] {});
  return worker_.pushed();
}

Status HostDevice::Queue::Outcome(std::uint64_t ticket) const {
  const std::lock_guard lock(mutex_);
  return failed_at_ != 0 && failed_at_ <= ticket ? failure_ : Status();
}

Result<bool> HostDevice::Queue::IsDone(std::uint64_t ticket) {
  if (!worker_.IsHere()) return DeviceError(device_, "used in a child after fork");
  SEALPOINT_CHECK(ticket != 0 && ticket <= worker_.pushed());
  SEALPOINT_RETURN_IF_ERROR(Outcome(ticket));
  const bool done = worker_.IsDone(ticket);
  SEALPOINT_RETURN_IF_ERROR(Outcome(ticket));  // it may have failed since
  return done;
}

Status HostDevice::Queue::Wait(std::uint64_t ticket) {
  if (!worker_.IsHere()) return DeviceError(device_, "used in a child after fork");
  SEALPOINT_CHECK(ticket != 0 && ticket <= worker_.pushed());
  worker_.WaitFor(ticket);
  return Outcome(ticket);
}

HostDevice::HostDevice(HostDeviceOptions options) : state_(std::make_shared<State>(options)) {
  for (int device = 0; device < options.device_count; ++device) {
    state_->default_streams[device] = MakeStream();
  }
}

HostDevice::~HostDevice() {
  if (getpid() != state_->owner) return;
  SEALPOINT_CHECK(counters().pinned_bytes == 0);
}

std::unique_ptr<DeviceMemory> HostDevice::Allocate(int device, std::uint64_t size_bytes) {
  return state_->addresses->Allocate(device, size_bytes);
}

std::unique_ptr<HostStream> HostDevice::MakeStream() {
  return std::make_unique<HostStream>(state_->Draw(), state_->options.delay_max);
}

HostStream& HostDevice::default_stream(int device) {
  const std::lock_guard lock(state_->mutex);
  return *state_->default_streams.at(device);
}

void HostDevice::FailCopyWhenQueued(std::uint64_t nth) {
  const std::lock_guard lock(state_->mutex);
  state_->fail_queued = nth;
}

void HostDevice::FailCopyWhenRun(std::uint64_t nth) {
  const std::lock_guard lock(state_->mutex);
  state_->fail_run = nth;
}

void HostDevice::FailMark(std::uint64_t nth) {
  const std::lock_guard lock(state_->mutex);
  state_->fail_mark = nth;
}

void HostDevice::FlipBitInCopy(std::uint64_t nth) {
  const std::lock_guard lock(state_->mutex);
  state_->flip = nth;
}

void HostDevice::LoseDevice(int device) {
  const std::lock_guard lock(state_->mutex);
  state_->lost.insert(device);
}

void HostDevice::RefusePins() {
  const std::lock_guard lock(state_->mutex);
  state_->refuses_pins = true;
}

void HostDevice::Pause() {
  const std::lock_guard lock(state_->mutex);
  state_->paused = true;
}

void HostDevice::Resume() {
  const std::lock_guard lock(state_->mutex);
  state_->paused = false;
  state_->resumed.notify_all();
}

HostDeviceCounters HostDevice::counters() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counters;
}

HostDeviceFiles& HostDevice::files() const { return *state_->files; }

Status HostDevice::CheckFiles() {
  SEALPOINT_CHECK(counters().queues != 0);
  if (state_->options.reads_files) return {};
  return MakeError(Code::kUnsupported, "stand-in devices that read no files");
}

Result<std::unique_ptr<device::DeviceFile>> HostDevice::OpenFile(int descriptor) {
  SEALPOINT_RETURN_IF_ERROR(CheckFiles());
  return state_->files->Open(descriptor);
}

Status HostDevice::CheckAvailable(int device) { return state_->Check(device); }

Status HostDevice::CheckKernels(int device) {
  SEALPOINT_RETURN_IF_ERROR(state_->Check(device));
  return state_->options.has_kernels ? Status() : DeviceError(device, "has no kernels");
}

Result<std::unique_ptr<CopyQueue>> HostDevice::MakeQueue(int device) {
  SEALPOINT_RETURN_IF_ERROR(state_->Check(device));
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->counters.queues;
  }
  return std::unique_ptr<CopyQueue>(new Queue(state_, device));
}

Status HostDevice::Pin(MutableByteSpan host) {
  const std::lock_guard lock(state_->mutex);
  if (state_->counters.queues == 0) return DeviceError(0, "pinning needs a queue");
  if (state_->refuses_pins) return DeviceError(0, "no memory to pin");
  SEALPOINT_CHECK(!host.empty() && !state_->IsPinned(host.first(1)));
  state_->pinned[host.data()] = host.size();
  state_->counters.pinned_bytes += host.size();
  ++state_->counters.pins;
  return Status();
}

void HostDevice::Unpin(MutableByteSpan host) {
  const std::lock_guard lock(state_->mutex);
  const auto pinned = state_->pinned.find(host.data());
  SEALPOINT_CHECK(pinned != state_->pinned.end() && pinned->second == host.size());
  state_->pinned.erase(pinned);
  state_->counters.pinned_bytes -= host.size();
}

}  // namespace sealpoint::testing
