// SPDX-License-Identifier: Apache-2.0
//
// The reader of readers/reference as a process that checks one checkpoint after the other; its
// serve.py says what goes through the pipes.
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

// What a reader says of a directory.
struct Opinion {
  std::string verdict;
  std::set<std::string> violations;  // "code rule file"
  // Of a committed checkpoint: "tensor NAME" or "object NAME", and the digest of its raw bytes.
  std::map<std::string, std::string> content;
  std::string ToString() const;
};

class SecondReader {
 public:
  // Null, with a line on stderr, where this machine cannot run it.
  static std::unique_ptr<SecondReader> Start();
  ~SecondReader();
  SecondReader(const SecondReader&) = delete;
  SecondReader& operator=(const SecondReader&) = delete;

  // Nothing where it cannot tell, because it takes longer than seconds or finds no zstd; then it is
  // to be started again. Ends the program where it ended with an error.
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
