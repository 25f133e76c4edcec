// SPDX-License-Identifier: Apache-2.0
//
// The conformance corpus: small checkpoints, each of which shows one thing. What a reader must
// say of each is in corpus.md; here is only how their bytes are made. Deterministic: fixed ids and
// times, and compressed frames that are written by hand, so that no library's version matters.
#ifndef SEALPOINT_TESTS_CONFORMANCE_CORPUS_H_
#define SEALPOINT_TESTS_CONFORMANCE_CORPUS_H_

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "tests/support/container/mini_container.h"

namespace sealpoint::testing {

// What loading everything must yield, by name; tensors dense and row-major.
struct CorpusContent {
  std::map<std::string, Bytes> tensors;
  std::map<std::string, Bytes> objects;
};

struct CorpusEntry {
  std::string name;
  MiniContainer container;  // its files are the entry's
  std::map<std::string, std::string> links;
  std::vector<std::string> directories;
  CorpusContent content;
  MiniSpec spec;         // what the container was made of, before any damage
  bool is_alone = true;  // neither a delta nor a checkpoint beside one
};

class Corpus {
 public:
  // Adds what the spec describes. References stay valid.
  CorpusEntry& Add(std::string name, const MiniSpec& spec);
  const std::deque<CorpusEntry>& entries() const { return entries_; }

 private:
  std::deque<CorpusEntry> entries_;
};

Corpus BuildCorpus();

// The parts of it.
void AddGoodLayouts(Corpus& corpus);
void AddGoodDirectories(Corpus& corpus);
void AddBadDirectories(Corpus& corpus);
void AddBadHeaders(Corpus& corpus);
void AddBadMarkers(Corpus& corpus);
void AddBadIndexes(Corpus& corpus);
void AddBadBlobs(Corpus& corpus);
void AddBadRecords(Corpus& corpus);
void AddCoded(Corpus& corpus);     // good and bad
void AddLimits(Corpus& corpus);    // good and bad
void AddFeatures(Corpus& corpus);  // good and bad
// Good and bad, and the bases beside them. These are named `step-…` and are no entries of the
// table.
void AddDeltas(Corpus& corpus);
void AddSeveralDamages(Corpus& corpus);

// Two blobs with a bit of everything: a box list, an empty tensor, a grid, runs, a scalar, objects
// of one, of two and of no chunk.
MiniSpec BaseSpec();
// One tensor of one region in one blob, and one object.
MiniSpec OneRankSpec();
// BaseSpec, a coded tensor in a third blob, and fingerprints.
MiniSpec FingerprintedSpec();

// The ids that the entries have beside those of BaseSpec.
inline AttemptId OtherAttempt() { return MiniSpec::MakeId(0x55); }

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CONFORMANCE_CORPUS_H_
