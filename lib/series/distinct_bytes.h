// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SERIES_DISTINCT_BYTES_H_
#define SEALPOINT_LIB_SERIES_DISTINCT_BYTES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "sealpoint/storage.h"

namespace sealpoint::internal::series {

// Total bytes of files; files with several names (EntryInfo::file_number) are counted once.
class DistinctBytes {
 public:
  // Returns by how much they grew.
  std::uint64_t Add(const std::vector<EntryInfo>& files) {
    std::uint64_t grown = 0;
    for (const EntryInfo& file : files) {
      if (IsAlone(file) || counts_[file.file_number]++ == 0) grown += file.size_bytes;
    }
    return grown;
  }
  // Precondition: they were added. Returns by how much they shrank.
  std::uint64_t Remove(const std::vector<EntryInfo>& files) {
    std::uint64_t shrunk = 0;
    for (const EntryInfo& file : files) {
      if (IsAlone(file) || --counts_[file.file_number] == 0) shrunk += file.size_bytes;
    }
    return shrunk;
  }

 private:
  static bool IsAlone(const EntryInfo& file) { return file.file_number == 0; }

  std::map<std::uint64_t, std::uint64_t> counts_;  // names, by file
};

}  // namespace sealpoint::internal::series

#endif  // SEALPOINT_LIB_SERIES_DISTINCT_BYTES_H_
