// SPDX-License-Identifier: Apache-2.0
//
// Loads what stdin asks for from one checkpoint and writes the bytes to stdout. Each line is one of
// `tensor BYTES NAME`, `box BYTES NDIM OFFSET... EXTENT... NAME` and, behind those, `object NAME`.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <list>
#include <sstream>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"

namespace {

using Bytes = std::vector<std::byte>;

struct Wanted {
  sealpoint::ReadRequest request{};
  std::list<Bytes> tensors{};
  std::vector<std::string> objects{};
};

std::string RestOf(std::istream& line) {
  std::string rest;
  std::getline(line >> std::ws, rest);
  return rest;
}

sealpoint::MutableMemoryView Destination(std::istream& line, Wanted& wanted) {
  std::size_t size_bytes = 0;
  line >> size_bytes;
  return sealpoint::MutableMemoryView::Host(wanted.tensors.emplace_back(size_bytes));
}

void AddTensor(std::istream& line, Wanted& wanted) {
  const auto destination = Destination(line, wanted);
  wanted.request.Add(RestOf(line), destination);
}

void AddBox(std::istream& line, Wanted& wanted) {
  const auto destination = Destination(line, wanted);
  std::size_t ndim = 0;
  line >> ndim;
  sealpoint::Box box{.offset = std::vector<std::uint64_t>(ndim),
                     .extent = std::vector<std::uint64_t>(ndim)};
  for (auto& value : box.offset) line >> value;
  for (auto& value : box.extent) line >> value;
  wanted.request.Add(RestOf(line), box, destination);
}

Wanted ReadWanted() {
  Wanted wanted;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string what;
    line >> what;
    if (what == "tensor") {
      AddTensor(line, wanted);
    } else if (what == "box") {
      AddBox(line, wanted);
    } else {
      wanted.objects.push_back(RestOf(line));
    }
  }
  return wanted;
}

void Write(const Bytes& bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

template <typename Error>
int Fail(const Error& error) {
  std::puts(error.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const auto checkpoint = sealpoint::Checkpoint::Open(argv[1]);
  if (!checkpoint.ok()) return Fail(checkpoint.error());
  const Wanted wanted = ReadWanted();
  const auto plan = (*checkpoint)->Plan(wanted.request);
  if (!plan.ok()) return Fail(plan.error());
  const auto report = (*checkpoint)->Read(*plan);
  if (!report.ok()) return Fail(report.error());
  for (const Bytes& bytes : wanted.tensors) Write(bytes);
  for (const std::string& name : wanted.objects) {
    const auto bytes = (*checkpoint)->ReadObject(name);
    if (!bytes.ok()) return Fail(bytes.error());
    Write(*bytes);
  }
  return 0;
}
