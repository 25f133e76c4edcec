// SPDX-License-Identifier: Apache-2.0
//
// How one thing of a good checkpoint is made bad.
#ifndef SEALPOINT_TESTS_CONFORMANCE_CORPUS_DAMAGE_H_
#define SEALPOINT_TESTS_CONFORMANCE_CORPUS_DAMAGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "lib/base/endian.h"
#include "tests/conformance/corpus.h"
#include "tests/conformance/reseal.h"

namespace sealpoint::testing {

using Change = std::function<void(Bytes& file)>;

// What corpus.md calls a file ("COMMIT", "index", "01.blob") as it is named in the directory.
std::string FileNameOf(const std::string& short_name);

// BaseSpec with one file changed, and then the digests repaired that `seals` names.
CorpusEntry& AddChanged(Corpus& corpus, std::string name, const std::string& short_name,
                        const Change& change, unsigned seals);

// Sets the little-endian field at `offset`.
template <typename T>
Change SetField(std::uint64_t offset, T value) {
  return [=](Bytes& file) { internal::StoreLe(MutableByteSpan(file), offset, value); };
}
inline Change FlipByte(std::uint64_t offset) {
  return [=](Bytes& file) { file[offset] ^= std::byte{0x10}; };
}

// Where the parts of blob `number` of BaseSpec lie.
const MiniBlob& BaseBlob(int number);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CONFORMANCE_CORPUS_DAMAGE_H_
