// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_FUZZ_SUPPORT_STORED_ZIP_H_
#define SEALPOINT_FUZZ_SUPPORT_STORED_ZIP_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sealpoint::fuzz {

// A zip archive of entries that are stored as they are, with their names and right CRC-32s.
std::string StoredZip(const std::vector<std::pair<std::string, std::string_view>>& entries);

// What torch.save writes: this pickle, and storages "0" and "1" of 64 bytes and of 8.
std::string TorchSaved(std::string_view pickle);

// The item of the directories that are checked: a mapping, or a list of one as Megatron stores it.
std::string ItemOfDcp(bool is_list);

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_STORED_ZIP_H_
