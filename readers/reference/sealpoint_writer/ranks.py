# SPDX-License-Identifier: Apache-2.0
"""What several ranks hold, each region of it stored once (spec/commit.md, section 2.4; R-CMT-32, R-CMT-33)."""

import collections

from .codec import CODEC_NONE
from .items import whole

# Bytes of a region of a tensor, or of an object, as one rank has them.
Holding = collections.namedtuple("Holding", "item region data codec")


def hold(item, data, region=None, codec=CODEC_NONE):
    return Holding(item, region or whole(item.shape), data, codec)


def write_blobs(attempt, ranks, compat=0):
    """One blob for each rank, given the holdings of each. A region that several hold is written by the one with the least.

    Replicas that differ are refused: the checkpoint would hold a state that nobody had. An empty tensor, and an empty
    object, is declared by every rank that has it.
    """
    stored = {}
    blobs = [attempt.blob(compat) for _ in ranks]
    written = [0] * len(ranks)
    holders = collections.defaultdict(list)
    for rank, holdings in enumerate(ranks):
        for holding in holdings:
            holders[holding.item, holding.region].append(rank)
            if stored.setdefault((holding.item, holding.region), holding).data != holding.data:
                raise ValueError(f"{holding.item.name}: ranks hold different bytes of {holding.region}")
    for key, holding in stored.items():
        for rank in holders[key] if not holding.data else [min(holders[key], key=written.__getitem__)]:
            blobs[rank].add(holding.item, holding.data, holding.region, holding.codec)
            written[rank] += len(holding.data)
    return [attempt.write(blob) for blob in blobs]
