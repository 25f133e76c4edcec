# SPDX-License-Identifier: Apache-2.0
"""Known answers of XXH3-128 with seed 0, at both ends of each branch over lengths.

The input of length n is the bytes i * 7 mod 256. The answers are those of `xxhsum -H2` of xxHash 0.8.
"""

import unittest

from sealpoint_reference.xxh3 import digest

ANSWERS = {
    0: "99aa06d3014798d86001c324468d497f",
    1: "a6cd5e9392000f6ac44bdff4074eecdb",
    3: "656e81c56e41fe02c3489259e968ad9e",
    4: "ab5c3e7474d809db81a65295de8e7dde",
    8: "e4b9dd0b66ff3c50ebabbd0695002ff6",
    9: "82ddc95bc76007671c69c3f04aaed08c",
    16: "ddf6c1254d70f76794eaa17b20756f46",
    17: "263f67af63088041735fe434ded90c3c",
    128: "dd9e5aa9bd51cc9cc6bd21ecc865f29f",
    129: "00433635cf8d872e7f4accb76587485b",
    240: "89e3a0a2ee355d25d10beb4e0599e4b3",
    241: "75f4da43f23cce5a541b19226f0052e8",
    1024: "8bbb9f7af37f2f52dc5acf0b043c445b",
    1025: "20609de0583fad86e1d9cd946277ae26",
    4096: "e0ef0909b1bdd88b8fb047a89e810965",
}


class Xxh3(unittest.TestCase):
    def test_known_answers(self):
        for size, answer in ANSWERS.items():
            with self.subTest(size=size):
                self.assertEqual(digest(bytes(i * 7 & 255 for i in range(size))).hex(), answer)


if __name__ == "__main__":
    unittest.main()
