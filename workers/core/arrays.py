"""Array types of the core."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Vectors: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]

Key: TypeAlias = bytes
"""The 16 bytes of a fact's id, for many ids: a UUID takes ten times as long to make and to look up."""

Each: TypeAlias = float | Floats
"""One number for all facts, or one for each."""
