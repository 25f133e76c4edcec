// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_FINGERPRINT_JOB_H_
#define SEALPOINT_LIB_DEVICE_FINGERPRINT_JOB_H_

#include <cstdint>

#include "lib/base/on_both.h"
#include "lib/fingerprint/modulus.h"

// The fingerprint (spec/fingerprint.md) of a part of a tensor in three steps, each of independent
// threads. Plain C++17 for the host and for nvcc; kernels.cu runs them on a device.
//
// A tile is 1024 words of a row from a multiple of 1024 on: two digits of the word index. Its words
// times the coefficients of these two digits are summed first. Everything else in a coefficient is
// the same for the whole tile: its factor.
namespace sealpoint::internal::device {

constexpr std::uint64_t kFingerprintBase = 32;
constexpr std::uint64_t kFingerprintDigits = 13;  // of 64 bits
constexpr std::uint64_t kFingerprintDimensions = 32;
constexpr std::uint64_t kTileWords = kFingerprintBase * kFingerprintBase;
constexpr std::uint64_t kTileBytes = kTileWords * 4;
constexpr std::uint64_t kThreadWords = 8;  // of a tile, for one thread
constexpr std::uint64_t kThreadBytes = kThreadWords * 4;

// A value of each set; laid out as fingerprint::Pair.
struct FingerprintPair {
  std::uint64_t values[2];
};

// All pointers are addresses of the device. The memory of the region is dense.
struct FingerprintJob {
  const unsigned char* data;  // the byte run_begin of the region
  std::uint64_t run_begin;    // in bytes of the region
  std::uint64_t run_end;
  std::uint64_t row_begin;  // the bytes of the tensor's rows that the region has
  std::uint64_t row_end;
  std::uint64_t dimension_count;  // without the last dimension
  std::uint64_t offset[kFingerprintDimensions];
  std::uint64_t extent[kFingerprintDimensions];
  // [dimension from the last one][digit][value]
  const FingerprintPair* coefficients;

  // This batch of the tiles of all rows, which are numbered row by row from the first row on that
  // has a byte of the run.
  std::uint64_t first_tile;
  std::uint64_t tile_count;
  std::uint64_t group_size;  // threads for one tile
  std::uint64_t thread_count;
  FingerprintPair* factors;  // one per tile of the batch
  FingerprintPair* sums;     // one per thread, of all batches
};

SEALPOINT_ON_BOTH std::uint64_t TilesPerRow(const FingerprintJob& job) {
  return (job.row_end - 1) / kTileBytes - job.row_begin / kTileBytes + 1;
}
SEALPOINT_ON_BOTH std::uint64_t FirstRow(const FingerprintJob& job) {
  return job.run_begin / (job.row_end - job.row_begin);
}
SEALPOINT_ON_BOTH std::uint64_t RowCount(const FingerprintJob& job) {
  return (job.run_end - 1) / (job.row_end - job.row_begin) - FirstRow(job) + 1;
}
// The first byte of a tile that a group of threads takes. Rows within one tile have small groups.
SEALPOINT_ON_BOTH std::uint64_t GroupBegin(const FingerprintJob& job) {
  return TilesPerRow(job) == 1 ? job.row_begin % kTileBytes / kThreadBytes * kThreadBytes : 0;
}
SEALPOINT_ON_BOTH std::uint64_t GroupSize(const FingerprintJob& job) {
  if (TilesPerRow(job) > 1) return kTileBytes / kThreadBytes;
  const std::uint64_t bytes = (job.row_end - 1) % kTileBytes + 1 - GroupBegin(job);
  std::uint64_t size = 1;
  while (size * kThreadBytes < bytes) size *= 2;
  return size;
}

SEALPOINT_ON_BOTH FingerprintPair Multiply(const FingerprintPair& a, const FingerprintPair& b) {
  return {{fingerprint::Multiply(a.values[0], b.values[0]),
           fingerprint::Multiply(a.values[1], b.values[1])}};
}
SEALPOINT_ON_BOTH FingerprintPair Add(const FingerprintPair& a, const FingerprintPair& b) {
  return {{fingerprint::Add(a.values[0], b.values[0]), fingerprint::Add(a.values[1], b.values[1])}};
}

// The product of the coefficients of the digits of `index` from number `first_digit` on.
SEALPOINT_ON_BOTH FingerprintPair DigitProduct(const FingerprintJob& job, std::uint64_t dimension,
                                               std::uint64_t index, std::uint64_t first_digit,
                                               FingerprintPair product) {
  const FingerprintPair* const digits =
      job.coefficients + dimension * kFingerprintDigits * kFingerprintBase;
  for (std::uint64_t digit = first_digit; index > 0; ++digit, index /= kFingerprintBase) {
    const std::uint64_t value = index % kFingerprintBase;
    if (value != 0) product = Multiply(product, digits[digit * kFingerprintBase + value]);
  }
  return product;
}

// First step, thread of [0, tile_count): the factor of a tile.
SEALPOINT_ON_BOTH void StoreFactor(const FingerprintJob& job, std::uint64_t thread) {
  const std::uint64_t tile = job.first_tile + thread;
  const std::uint64_t per_row = TilesPerRow(job);
  FingerprintPair factor =
      DigitProduct(job, 0, job.row_begin / kTileBytes + tile % per_row, 2, FingerprintPair{{1, 1}});
  std::uint64_t row = FirstRow(job) + tile / per_row;
  for (std::uint64_t d = job.dimension_count; d-- > 0; row /= job.extent[d]) {
    factor =
        DigitProduct(job, job.dimension_count - d, job.offset[d] + row % job.extent[d], 0, factor);
  }
  job.factors[thread] = factor;
}

// The words of a thread at byte `begin` of a row; bytes outside of the region or of the run are
// zeros.
SEALPOINT_ON_BOTH void LoadWords(const FingerprintJob& job, std::uint64_t row, std::uint64_t begin,
                                 std::uint32_t* words) {
  for (std::uint64_t i = 0; i < kThreadWords; ++i) words[i] = 0;
  // In bytes of the region; the subtractions may wrap around and back.
  const std::uint64_t shift = row * (job.row_end - job.row_begin) - job.row_begin;
  std::uint64_t first = begin < job.row_begin ? job.row_begin : begin;
  std::uint64_t last = begin + kThreadBytes < job.row_end ? begin + kThreadBytes : job.row_end;
  if (first >= last) return;
  if (shift + first < job.run_begin) first = job.run_begin - shift;
  if (shift + last > job.run_end) last = job.run_end - shift;
  if (first >= last) return;
  const unsigned char* const from = job.data + (shift + first - job.run_begin);
#if defined(__CUDA_ARCH__)
  const bool is_whole = last - first == kThreadBytes;
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if (is_whole && address % 16 == 0) {
    for (std::uint64_t i = 0; i < kThreadWords; i += 4) {
      const uint4 four = reinterpret_cast<const uint4*>(from)[i / 4];
      words[i] = four.x;
      words[i + 1] = four.y;
      words[i + 2] = four.z;
      words[i + 3] = four.w;
    }
    return;
  }
  if (is_whole && address % 4 == 0) {
    for (std::uint64_t i = 0; i < kThreadWords; ++i) {
      words[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
    }
    return;
  }
#endif
  // With constant indices of `words`, these stay in registers.
  for (std::uint64_t i = 0; i < kThreadBytes; ++i) {
    const std::uint64_t at = begin + i;
    if (first <= at && at < last) {
      words[i / 4] |= static_cast<std::uint32_t>(from[at - first]) << (i % 4 * 8);
    }
  }
}

// The coefficients of a thread's words, each in parts of 21 bits, the low one first: products with
// words have 53 bits, so that eight of them add up in 56.
struct WordCoefficients {
  static constexpr std::uint64_t kPartBits = 21;
  std::uint32_t parts[2][3][kThreadWords];  // [set][part][word]
};

SEALPOINT_ON_BOTH WordCoefficients CoefficientsAt(const FingerprintJob& job, std::uint64_t word) {
  WordCoefficients coefficients{};
  for (std::uint64_t i = 0; i < kThreadWords; ++i) {
    const FingerprintPair product =
        DigitProduct(job, 0, (word + i) % kTileWords, 0, FingerprintPair{{1, 1}});
    for (std::uint64_t set = 0; set < 2; ++set) {
      for (std::uint64_t part = 0; part < 3; ++part) {
        const std::uint64_t shifted = product.values[set] >> (part * WordCoefficients::kPartBits);
        coefficients.parts[set][part][i] = static_cast<std::uint32_t>(
            shifted & ((std::uint64_t{1} << WordCoefficients::kPartBits) - 1));
      }
    }
  }
  return coefficients;
}

// The sum of the words times their coefficients, of one set.
SEALPOINT_ON_BOTH std::uint64_t SumOfWords(const std::uint32_t (&parts)[3][kThreadWords],
                                           const std::uint32_t* words) {
  std::uint64_t sum = 0;
  for (std::uint64_t part = 0; part < 3; ++part) {
    std::uint64_t products = 0;
    for (std::uint64_t i = 0; i < kThreadWords; ++i) {
      products += static_cast<std::uint64_t>(words[i]) * parts[part][i];
    }
    // Times 2^shift: modulo 2^61 - 1, a rotation of 61 bits.
    const std::uint64_t shift = part * WordCoefficients::kPartBits;
    sum += ((products << shift) & fingerprint::kModulus) + (products >> (61 - shift));
  }
  return fingerprint::Reduce(sum);
}

// Second step, thread of [0, thread_count): its words of each tile of its group. Adds to its sum.
// Precondition: the group size divides the number of threads.
SEALPOINT_ON_BOTH void SumTiles(const FingerprintJob& job, std::uint64_t thread) {
  const std::uint64_t begin = GroupBegin(job) + thread % job.group_size * kThreadBytes;
  const WordCoefficients coefficients = CoefficientsAt(job, begin / 4);
  const std::uint64_t per_row = TilesPerRow(job);
  const std::uint64_t first_in_row = job.row_begin / kTileBytes;
  FingerprintPair sum = job.first_tile == 0 ? FingerprintPair{{0, 0}} : job.sums[thread];
  const std::uint64_t groups = job.thread_count / job.group_size;
  const std::uint64_t group = thread / job.group_size;
  // Row and tile in it step by additions: a division costs as much as the sum of the words.
  std::uint64_t row = FirstRow(job) + (job.first_tile + group) / per_row;
  std::uint64_t in_row = (job.first_tile + group) % per_row;
  const std::uint64_t row_step = groups / per_row;
  const std::uint64_t in_row_step = groups % per_row;
  for (std::uint64_t i = group; i < job.tile_count; i += groups) {
    std::uint32_t words[kThreadWords];
    LoadWords(job, row, (first_in_row + in_row) * kTileBytes + begin, words);
    const FingerprintPair of_words = {
        {SumOfWords(coefficients.parts[0], words), SumOfWords(coefficients.parts[1], words)}};
    sum = Add(sum, Multiply(of_words, job.factors[i]));
    row += row_step;
    in_row += in_row_step;
    if (in_row >= per_row) {
      in_row -= per_row;
      ++row;
    }
  }
  job.sums[thread] = sum;
}

// Third step, repeated until one is left: adds up sums, kFanIn by each thread.
struct FingerprintFold {
  static constexpr std::uint64_t kFanIn = 64;
  const FingerprintPair* from;
  std::uint64_t count;
  FingerprintPair* to;  // FoldedCount
};

SEALPOINT_ON_BOTH std::uint64_t FoldedCount(const FingerprintFold& fold) {
  return (fold.count + FingerprintFold::kFanIn - 1) / FingerprintFold::kFanIn;
}
SEALPOINT_ON_BOTH void FoldSums(const FingerprintFold& fold, std::uint64_t thread) {
  FingerprintPair sum = {{0, 0}};
  const std::uint64_t step = FoldedCount(fold);
  for (std::uint64_t i = thread; i < fold.count; i += step) sum = Add(sum, fold.from[i]);
  fold.to[thread] = sum;
}

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_FINGERPRINT_JOB_H_
