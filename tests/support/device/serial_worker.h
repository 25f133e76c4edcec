// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_DEVICE_SERIAL_WORKER_H_
#define SEALPOINT_TESTS_SUPPORT_DEVICE_SERIAL_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>

namespace sealpoint::testing {

// A thread that runs jobs one after the other, late: what streams of the stand-in device are made
// of. Thread safety: all functions.
class SerialWorker {
 public:
  SerialWorker();
  ~SerialWorker();  // Runs what was pushed, then joins; does nothing in a forked child.
  SerialWorker(const SerialWorker&) = delete;
  SerialWorker& operator=(const SerialWorker&) = delete;

  // Returns the position of the job, from 1.
  std::uint64_t Push(std::function<void()> job);
  std::uint64_t pushed() const;  // the position of the last job
  bool IsDone(std::uint64_t position) const;
  void WaitFor(std::uint64_t position) const;
  // False in a child after fork, where there is no thread.
  bool IsHere() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DEVICE_SERIAL_WORKER_H_
