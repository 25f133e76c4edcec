# SPDX-License-Identifier: Apache-2.0
"""XXH3-128 with seed 0, as 16 canonical bytes (spec/container.md, section 1).

Written from the public description of the algorithm, xxhash_spec.md 0.2.0. Python's integers do not wrap, so values
are cut to 64 bits where their upper bits could come down again: before shifts to the right, products and the end.
"""

import operator
import struct

M32 = 0xFFFFFFFF
M64 = 0xFFFFFFFFFFFFFFFF

PRIME32_1, PRIME32_2, PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
PRIME64_1 = 0x9E3779B185EBCA87
PRIME64_2 = 0xC2B2AE3D27D4EB4F
PRIME64_3 = 0x165667B19E3779F9
PRIME64_4 = 0x85EBCA77C2B2AE63
PRIME64_5 = 0x27D4EB2F165667C5
PRIME_MX1 = 0x165667919E3779F9
PRIME_MX2 = 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")

BLOCK = 1024
STRIPE = 64


def _secret(offset, count):
    return struct.unpack_from(f"<{count}Q", SECRET, offset)


def _fold(product):
    return (product & M64) ^ (product >> 64)


def _avalanche(x):
    x &= M64
    x ^= x >> 37
    x = x * PRIME_MX1 & M64
    return x ^ (x >> 32)


def _avalanche_xxh64(x):
    x &= M64
    x ^= x >> 33
    x = x * PRIME64_2 & M64
    x ^= x >> 29
    x = x * PRIME64_3 & M64
    return x ^ (x >> 32)


def _swap(x, size):
    return int.from_bytes(x.to_bytes(size, "little"), "big")


def _empty(_data):
    s = _secret(64, 4)
    return _avalanche_xxh64(s[0] ^ s[1]), _avalanche_xxh64(s[2] ^ s[3])


def _1_to_3(data):
    size = len(data)
    combined = data[-1] | size << 8 | data[0] << 16 | data[size >> 1] << 24
    s = struct.unpack_from("<4I", SECRET, 0)
    swapped = _swap(combined, 4)
    rotated = (swapped << 13 | swapped >> 19) & M32
    return _avalanche_xxh64(s[0] ^ s[1] ^ combined), _avalanche_xxh64(s[2] ^ s[3] ^ rotated)


def _4_to_8(data):
    s = _secret(16, 2)
    first = int.from_bytes(data[:4], "little")
    last = int.from_bytes(data[-4:], "little")
    product = (s[0] ^ s[1] ^ (first | last << 32)) * (PRIME64_1 + (len(data) << 2))
    low, high = product & M64, product >> 64
    high = high + (low << 1) & M64
    low ^= high >> 3
    low ^= low >> 35
    low = low * PRIME_MX2 & M64
    return low ^ low >> 28, _avalanche(high)


def _9_to_16(data):
    s = _secret(32, 4)
    first = int.from_bytes(data[:8], "little")
    last = int.from_bytes(data[-8:], "little")
    second = s[2] ^ s[3] ^ last
    product = (s[0] ^ s[1] ^ first ^ last) * PRIME64_1
    low = (product & M64) + (len(data) - 1 << 54) & M64
    high = (product >> 64) + (second >> 32 << 32) + (second & M32) * PRIME32_2 & M64
    low ^= _swap(high, 8)
    product = low * PRIME64_2
    return _avalanche(product), _avalanche((product >> 64) + high * PRIME64_2)


def _mix(data, at, secret_at):
    words = struct.unpack_from("<2Q", data, at)
    s = _secret(secret_at, 2)
    return _fold((words[0] ^ s[0]) * (words[1] ^ s[1]))


def _mix_two(acc, data, at1, at2, secret_at):
    acc[0] += _mix(data, at1, secret_at)
    acc[1] += _mix(data, at2, secret_at + 16)
    acc[0] = (acc[0] ^ sum(struct.unpack_from("<2Q", data, at2))) & M64
    acc[1] = (acc[1] ^ sum(struct.unpack_from("<2Q", data, at1))) & M64


def _finish_medium(acc, size):
    high = acc[0] * PRIME64_1 + acc[1] * PRIME64_4 + size * PRIME64_2
    return _avalanche(acc[0] + acc[1]), -_avalanche(high) & M64


def _17_to_128(data):
    size = len(data)
    acc = [size * PRIME64_1 & M64, 0]
    for i in range(size - 1 >> 5, -1, -1):
        _mix_two(acc, data, i * 16, size - i * 16 - 16, i * 32)
    return _finish_medium(acc, size)


def _129_to_240(data):
    size = len(data)
    acc = [size * PRIME64_1 & M64, 0]
    for i in range(4):
        _mix_two(acc, data, i * 32, i * 32 + 16, i * 32)
    acc = [_avalanche(acc[0]), _avalanche(acc[1])]
    for i in range(4, size >> 5):
        _mix_two(acc, data, i * 32, i * 32 + 16, (i - 4) * 32 + 3)
    _mix_two(acc, data, size - 16, size - 32, 103)
    return _finish_medium(acc, size)


# Of each of the eight lanes, the words of the secret that meet stripes 0, 1, ... of a block.
_LANE_SECRETS = [[_secret(8 * stripe + 8 * lane, 1)[0] for stripe in range(BLOCK // STRIPE)] for lane in range(8)]
_LAST_SECRETS = [[word] for word in _secret(len(SECRET) - 71, 8)]
_SCRAMBLE = _secret(len(SECRET) - 64, 8)


def _accumulate(acc, words, secrets):
    """All stripes of one block at once: within a block only sums are taken, so their order does not matter."""
    for lane in range(8):
        column = words[lane::8]
        values = map(operator.xor, column, secrets[lane])
        acc[lane ^ 1] += sum(column)
        acc[lane] += sum([(value & M32) * (value >> 32) for value in values])


def _scramble(acc):
    for lane, secret in enumerate(_SCRAMBLE):
        value = acc[lane] & M64
        acc[lane] = (value ^ value >> 47 ^ secret) * PRIME32_1 & M64


def _merge(acc, start, secret_at):
    s = _secret(secret_at, 8)
    for i in range(0, 8, 2):
        start += _fold((acc[i] ^ s[i]) * (acc[i + 1] ^ s[i + 1]))
    return _avalanche(start)


def _large(data):
    size = len(data)
    acc = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1]
    blocks = (size - 1) // BLOCK
    full = struct.Struct(f"<{BLOCK // 8}Q")
    for words in full.iter_unpack(data[:blocks * BLOCK]):
        _accumulate(acc, words, _LANE_SECRETS)
        _scramble(acc)
    stripes = (size - blocks * BLOCK - 1) // STRIPE
    _accumulate(acc, struct.unpack_from(f"<{stripes * 8}Q", data, blocks * BLOCK), _LANE_SECRETS)
    _accumulate(acc, struct.unpack_from("<8Q", data, size - STRIPE), _LAST_SECRETS)
    acc = [value & M64 for value in acc]
    return (_merge(acc, size * PRIME64_1 & M64, 11),
            _merge(acc, ~(size * PRIME64_2) & M64, len(SECRET) - 75))


_BY_LENGTH = ((0, _empty), (3, _1_to_3), (8, _4_to_8), (16, _9_to_16), (128, _17_to_128), (240, _129_to_240))


def digest(data):
    """The 16 canonical bytes: the high half first, each half big-endian."""
    data = memoryview(data)
    for longest, function in _BY_LENGTH:
        if len(data) <= longest:
            low, high = function(data)
            break
    else:
        low, high = _large(data)
    return struct.pack(">2Q", high, low)
