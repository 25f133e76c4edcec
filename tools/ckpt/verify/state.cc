// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/verify/state.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "sealpoint/bytes.h"
#include "sealpoint/storage.h"
#include "tools/ckpt/report/new_file.h"
#include "tools/common/text.h"

namespace sealpoint::tools::verify {
namespace {

constexpr std::chrono::seconds kSavePeriod{5};

volatile std::sig_atomic_t caught_signal = 0;

}  // namespace

StateFile::StateFile(std::string path, std::shared_ptr<VerifiedChunks> verified, std::string note)
    : path_(std::move(path)), verified_(std::move(verified)), note_(std::move(note)) {}

Result<std::unique_ptr<StateFile>> StateFile::Open(const std::string& path) {
  const Result<std::string> text = ReadBegin(path, ~std::uint64_t{0});
  if (!text && text.error().code() != Code::kNotFound) return text.error();
  std::shared_ptr<VerifiedChunks> verified;
  std::string note;
  if (text) {
    auto decoded = VerifiedChunks::Decode(*text);
    if (decoded) {
      verified = *std::move(decoded);
      note = fmt::format("continues the verification started at {}",
                         FormatTime(verified->begun_unix_s() * 1'000'000'000));
    } else if (decoded.error().code() == Code::kCorrupt) {
      note = decoded.error().message() + "; the verification starts over";
    } else {
      return Status(decoded.error()).AtPath(path);
    }
  }
  if (!verified) verified = VerifiedChunks::Create();
  std::unique_ptr<StateFile> file(new StateFile(path, std::move(verified), std::move(note)));
  if (Status status = file->Save(); !status.ok()) return status;
  return file;
}

Status StateFile::Save() const {
  const auto [parent, name] = SplitPath(path_);
  const auto directory = DefaultStorage()->OpenDirectory(parent);
  if (!directory) return Status(Code::kIo, directory.error().message()).AtPath(path_);
  return (*directory)->Replace(name, AsBytes(verified_->Encode()));
}

void StateFile::SaveNowAndThen() {
  if (Clock::now() - saved_ < kSavePeriod) return;
  if (Status status = Save(); failure_.ok()) failure_ = std::move(status);
  saved_ = Clock::now();
}

Status StateFile::Remove() const { return RemoveAll(*DefaultStorage(), path_); }

void CatchSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { caught_signal = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction before = {};
    // What the caller ignores, as nohup does, stays ignored.
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    (void)::sigaction(signal, &action, nullptr);
  }
}

int CaughtSignal() { return caught_signal; }

void EndBySignal(int signal) {
  (void)std::signal(signal, SIG_DFL);
  (void)std::raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace sealpoint::tools::verify
