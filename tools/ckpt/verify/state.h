// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_VERIFY_STATE_H_
#define SEALPOINT_TOOLS_CKPT_VERIFY_STATE_H_

#include <chrono>
#include <memory>
#include <string>

#include "sealpoint/status.h"
#include "sealpoint/verify.h"

namespace sealpoint::tools::verify {

// The file of --state: what an interrupted verification has found good. It is replaced in one step,
// so that whatever happens it is whole, and removed once the verification is complete. Of several
// processes that use one file at once each loses what another writes, and reads that again.
class StateFile {
 public:
  // Reads the file, or begins a new one, which is written at once: that it cannot be is said now
  // and not after hours. Errors: those of VerifiedChunks::Decode but Corrupt, Io, NoSpace.
  static Result<std::unique_ptr<StateFile>> Open(const std::string& path);

  const std::shared_ptr<VerifiedChunks>& verified() const { return verified_; }
  // What a person should know of it; may be empty.
  const std::string& note() const { return note_; }

  Status Save() const;
  // Saves some seconds after the last time. Thread safety: any thread, one call at a time. An error
  // ends no verification; it is the next one's that cannot go on.
  void SaveNowAndThen();
  // The first error of SaveNowAndThen.
  const Status& failure() const { return failure_; }
  Status Remove() const;

 private:
  using Clock = std::chrono::steady_clock;
  StateFile(std::string path, std::shared_ptr<VerifiedChunks> verified, std::string note);

  const std::string path_;
  const std::shared_ptr<VerifiedChunks> verified_;
  const std::string note_;
  Clock::time_point saved_ = Clock::now();
  Status failure_;
};

// From now on SIGTERM, SIGINT and SIGHUP do not end the process the first time.
void CatchSignals();
// The signal that came since; 0 for none.
int CaughtSignal();
// Ends the process as the signal would have done.
[[noreturn]] void EndBySignal(int signal);

}  // namespace sealpoint::tools::verify

#endif  // SEALPOINT_TOOLS_CKPT_VERIFY_STATE_H_
