// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/common/arguments.h"

#include <CLI/CLI.hpp>

namespace sealpoint::bench {

struct Arguments::Parser {
  explicit Parser(const std::string& description) : app(description) {}
  CLI::App app;
};

Arguments::Arguments(const std::string& description)
    : parser_(std::make_unique<Parser>(description)) {}

Arguments::~Arguments() = default;

void Arguments::Add(const std::string& name, std::string& value, const std::string& help) {
  parser_->app.add_option(name, value, help);
}
void Arguments::Add(const std::string& name, int& value, const std::string& help) {
  parser_->app.add_option(name, value, help);
}
void Arguments::Add(const std::string& name, std::uint64_t& value, const std::string& help) {
  parser_->app.add_option(name, value, help);
}
void Arguments::Add(const std::string& name, std::vector<int>& values, const std::string& help) {
  parser_->app.add_option(name, values, help);
}
void Arguments::AddFlag(const std::string& name, bool& value, const std::string& help) {
  parser_->app.add_flag(name, value, help);
}

std::optional<int> Arguments::Parse(int argc, char** argv) {
  try {
    parser_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parser_->app.exit(error);
  }
  return std::nullopt;
}

}  // namespace sealpoint::bench
