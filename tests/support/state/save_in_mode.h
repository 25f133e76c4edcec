// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STATE_SAVE_IN_MODE_H_
#define SEALPOINT_TESTS_SUPPORT_STATE_SAVE_IN_MODE_H_

#include <functional>

#include "sealpoint/saver.h"

// Runs the same tests with each kind of save. The environment variable SEALPOINT_TEST_SAVES selects
// it: "held", in the background with memory for the whole state; "streamed", in the background with
// less memory; unset, in the foreground.

namespace sealpoint::testing {

// Buffers of 16 KiB, of which `usual` are too few for the states of these tests.
int BufferCountForSaves(int usual = 4);

// Saves. In the background, `spoil` runs as soon as the sources may change, and the outcome is
// polled for and then waited for.
Result<CommitInfo> SaveInMode(
    Saver& saver, const SaveTarget& target, const SaveOptions& options, const Sources& sources,
    const std::function<void()>& spoil = [] {});

// True in the background. Planning then comes first and is not among the calls of the duplicate.
bool SavesInBackground();

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STATE_SAVE_IN_MODE_H_
