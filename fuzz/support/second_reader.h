// SPDX-License-Identifier: Apache-2.0
//
// Runs the reader of readers/reference as a process that checks one checkpoint after the other. Its
// serve.py documents the messages.
#ifndef SEALPOINT_FUZZ_SUPPORT_SECOND_READER_H_
#define SEALPOINT_FUZZ_SUPPORT_SECOND_READER_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "sealpoint/bytes.h"

namespace sealpoint::fuzz {

// The findings of a reader on a directory.
struct Opinion {
  std::string verdict;
  std::set<std::string> violations;  // "code rule file"
  // For a committed checkpoint: "tensor NAME" or "object NAME", and the digest of its raw bytes.
  std::map<std::string, std::string> content;
  std::string ToString() const;
};

class SecondReader {
 public:
  // Null, with a line on stderr, if this machine cannot run it.
  static std::unique_ptr<SecondReader> Start();
  ~SecondReader();
  SecondReader(const SecondReader&) = delete;
  SecondReader& operator=(const SecondReader&) = delete;

  // Returns nothing if the reader gives no answer, because it takes too long or finds no zstd; it
  // must be started again then. Ends the program if the reader ended with an error.
  std::optional<Opinion> Check(const std::map<std::string, Bytes>& files);

 private:
  SecondReader(pid_t process, int requests, int replies);
  std::optional<std::string> ReadReply();

  pid_t process_;
  int requests_;
  int replies_;
};

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_SECOND_READER_H_
