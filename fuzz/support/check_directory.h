// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_FUZZ_SUPPORT_CHECK_DIRECTORY_H_
#define SEALPOINT_FUZZ_SUPPORT_CHECK_DIRECTORY_H_

#include <map>
#include <string>

#include "sealpoint/bytes.h"
#include "tests/conformance/corpus.h"

namespace sealpoint::fuzz {

// What is known of a directory before it is checked.
struct Suspect {
  std::map<std::string, Bytes> files;
  // If any of these files is missing or differs from its content here, the damage must be detected.
  // Empty if digests were repaired, so that the damage may be a checkpoint of other content.
  std::map<std::string, Bytes> pinned_files;
  // The content that every successful load must return; null if it is not known.
  const testing::CorpusContent* content = nullptr;
  // True if at most one plain field was changed, so that most likely one rule is broken.
  bool is_one_change = false;
};

// Opens, verifies at every level and loads a checkpoint of these files. Nothing may crash, take
// memory without bound or blame anything but the bytes; the levels of verification must agree with
// each other, and what is called committed must load.
void CheckDirectory(const Suspect& suspect);

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_CHECK_DIRECTORY_H_
