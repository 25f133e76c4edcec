# SPDX-License-Identifier: Apache-2.0
# cmake -D INPUT=<file> -D OUTPUT=<.cc> -D HEADER=<file> -D FUNCTION=<qualified name> -P EmbedBytes.cmake: the bytes of a file
# as a source that defines `sealpoint::ByteSpan FUNCTION()`, which HEADER declares.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(
  WRITE ${OUTPUT}
  "#include \"${HEADER}\"

namespace {

alignas(16) constexpr unsigned char kImage[] = {
${bytes}};

}  // namespace

sealpoint::ByteSpan ${FUNCTION}() { return std::as_bytes(std::span(kImage)); }
")
