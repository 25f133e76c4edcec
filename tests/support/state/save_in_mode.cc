// SPDX-License-Identifier: Apache-2.0
#include "tests/support/state/save_in_mode.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace sealpoint::testing {
namespace {

std::string Mode() {
  const char* const mode = std::getenv("SEALPOINT_TEST_SAVES");
  return mode == nullptr ? "" : mode;
}

}  // namespace

bool SavesInBackground() { return !Mode().empty(); }

int BufferCountForSaves(int usual) { return Mode() == "held" ? 64 : usual; }

Result<CommitInfo> SaveInMode(Saver& saver, const SaveTarget& target, const SaveOptions& options,
                              const Sources& sources, const std::function<void()>& spoil) {
  if (!SavesInBackground()) return saver.Save(target, options, sources);
  auto pending = saver.SaveAsync(target, options, sources);
  if (!pending.ok()) return std::move(pending).error();
  spoil();
  static_cast<void>((*pending)->Poll());
  auto result = (*pending)->Wait();
  const sealpoint::SaveState state = (*pending)->Poll();
  EXPECT_EQ(state == sealpoint::SaveState::kCommitted, result.ok());
  EXPECT_NE(state, sealpoint::SaveState::kRunning);
  return result;
}

}  // namespace sealpoint::testing
