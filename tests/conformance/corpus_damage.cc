// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/corpus_damage.h"

#include "lib/base/macros.h"

namespace sealpoint::testing {

std::string FileNameOf(const std::string& short_name) {
  if (short_name == "COMMIT") return short_name;
  if (short_name == "index") return internal::format::IndexName(MiniSpec{}.attempt);
  SEALPOINT_CHECK(short_name.size() == 7 && short_name.ends_with(".blob"));
  std::string name;
  for (int i = 0; i < 16; ++i) name += short_name.substr(0, 2);
  return name + ".blob";
}

CorpusEntry& AddChanged(Corpus& corpus, std::string name, const std::string& short_name,
                        const Change& change, unsigned seals) {
  CorpusEntry& entry = corpus.Add(std::move(name), BaseSpec());
  const Seals where = FindSeals(entry.container);
  change(entry.container.files.at(FileNameOf(short_name)));
  if (seals != 0) Reseal(entry.container.files, where, seals);
  return entry;
}

const MiniBlob& BaseBlob(int number) {
  static const MiniContainer container = BuildMini(BaseSpec());
  return container.blobs.at(number);
}

}  // namespace sealpoint::testing
