// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BENCHMARKS_COMMON_ARGUMENTS_H_
#define SEALPOINT_BENCHMARKS_COMMON_ARGUMENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sealpoint::bench {

// The command line of a benchmark. Hides the parser, whose header takes longer to compile than any
// benchmark. Borrows the variables, which hold the default values.
class Arguments {
 public:
  explicit Arguments(const std::string& description);
  ~Arguments();

  void Add(const std::string& name, std::string& value, const std::string& help);
  void Add(const std::string& name, int& value, const std::string& help);
  void Add(const std::string& name, std::uint64_t& value, const std::string& help);
  void Add(const std::string& name, std::vector<int>& values, const std::string& help);
  void AddFlag(const std::string& name, bool& value, const std::string& help);

  // The exit status if the program must end, after --help or an error, which are printed here; else
  // nothing.
  std::optional<int> Parse(int argc, char** argv);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace sealpoint::bench

#endif  // SEALPOINT_BENCHMARKS_COMMON_ARGUMENTS_H_
