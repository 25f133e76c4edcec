# SPDX-License-Identifier: Apache-2.0
# cmake -D INPUT=<file> -D OUTPUT=<.cc> -P EmbedBytes.cmake: the bytes of digest kernels as a source of lib/device.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(
  WRITE ${OUTPUT}
  "#include \"lib/device/digest_image.h\"

namespace sealpoint::internal {
namespace {

alignas(16) constexpr unsigned char kImage[] = {
${bytes}};

}  // namespace

ByteSpan DigestImage() { return std::as_bytes(std::span(kImage)); }

}  // namespace sealpoint::internal
")
