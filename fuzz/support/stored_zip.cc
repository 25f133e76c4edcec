// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/stored_zip.h"

#include <cstdint>
#include <initializer_list>

namespace sealpoint::fuzz {
namespace {

// Bit by bit: shares nothing with the reader that compares it.
std::uint32_t CrcOf(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

struct Field {
  int size;
  std::uint64_t value;
};

void Append(std::string& zip, std::initializer_list<Field> fields) {
  for (const Field& field : fields) {
    for (int i = 0; i < field.size; ++i) zip.push_back(static_cast<char>(field.value >> 8 * i));
  }
}

}  // namespace

std::string StoredZip(const std::vector<std::pair<std::string, std::string_view>>& entries) {
  std::string zip;
  std::string directory;
  for (const auto& [name, content] : entries) {
    const std::uint64_t begin = zip.size();
    const std::uint64_t crc = CrcOf(content);
    // needed version, flags, method, time, date, CRC-32, sizes, and those of name and extra field
    const std::initializer_list<Field> both = {{2, 10},
                                               {2, 0},
                                               {2, 0},
                                               {2, 0},
                                               {2, 0},
                                               {4, crc},
                                               {4, content.size()},
                                               {4, content.size()},
                                               {2, name.size()},
                                               {2, 0}};
    zip += "PK\x03\x04";
    Append(zip, both);
    zip.append(name).append(content);
    directory += "PK\x01\x02";
    Append(directory, {{2, 20}});
    Append(directory, both);
    // size of the comment, disk, attributes, where its header is
    Append(directory, {{2, 0}, {2, 0}, {2, 0}, {4, 0}, {4, begin}});
    directory += name;
  }
  const std::uint64_t begin = zip.size();
  zip += directory + "PK\x05\x06";
  Append(zip, {{2, 0}, {2, 0}, {2, entries.size()}, {2, entries.size()}});
  Append(zip, {{4, directory.size()}, {4, begin}, {2, 0}});
  return zip;
}

std::string TorchSaved(std::string_view pickle) {
  const std::string first(64, 'a');
  const std::string second(8, 'b');
  return StoredZip({{"archive/data.pkl", pickle},
                    {"archive/byteorder", "little"},
                    {"archive/data/0", first},
                    {"archive/data/1", second},
                    {"archive/version", "3\n"}});
}

std::string ItemOfDcp(bool is_list) {
  const std::string mapping = "}X" + std::string("\x01\0\0\0", 4) + "aK\x01s";
  return TorchSaved("\x80\x02" + (is_list ? "]" + mapping + "a." : mapping + "."));
}

}  // namespace sealpoint::fuzz
