"""Work on large arrays in tiles of rows that stay in the cache, on all processors."""

import os
from concurrent.futures import ThreadPoolExecutor

TILE = 1 << 18  # numbers per tile
FEW_CLASSES = 64  # up to here it pays to turn a tile, so that sums and maxima over classes run along rows
THREADS = os.cpu_count() or 1


def tiles(n, width):
    """Slices that cut n rows of a width into tiles."""
    step = max(1, TILE // width)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def each(function, items):
    """Results of a function of each item, in their order, so that a sum over them does not depend on the threads."""
    if len(items) == 1 or THREADS == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, items))
