// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_PROCESS_IN_CHILD_H_
#define SEALPOINT_TESTS_SUPPORT_PROCESS_IN_CHILD_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sealpoint::testing {

// True if `check` holds in a forked child, which reports by its exit status.
template <typename Check>
bool HoldsInChild(const Check& check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that hangs is a failure, too
    _exit(check() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_PROCESS_IN_CHILD_H_
