"""One picture file to its pixels, by Pillow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from timetrial.data.readers.files import bounded
from timetrial.data.samples import Array, DataError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "PPM")
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
MOST_PIXELS = 2**28


def pixels(
    path: Path, formats: Sequence[str] = FORMATS, mode: str | None = None, size: tuple[int, int] | None = None
) -> Array:
    """Bytes of shape rows x columns (x 3); `mode` is L (grey) or RGB, `size` rows and columns.

    Unless told, a grey picture stays grey and everything else becomes RGB.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=list(formats)) as picture:
            bounded(path, 3 * picture.width * picture.height)
            if picture.width * picture.height > MOST_PIXELS:
                raise DataError(f"{path}: {picture.width}x{picture.height} pixels are more than are read")
            return _array(picture, mode, size)
    except UnidentifiedImageError:
        raise DataError(f"{path}: is no picture in the format {' or '.join(formats)}") from None
    except Image.DecompressionBombError:
        raise DataError(f"{path}: has more pixels than are read") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        if isinstance(error, DataError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise DataError(f"{path}: is damaged or cut off ({error})") from None


def _array(picture: Image, mode: str | None, size: tuple[int, int] | None) -> Array:
    from PIL.Image import Resampling

    mode = mode or ("L" if picture.mode in ("1", "L") else "RGB")
    changed = picture if picture.mode == mode else picture.convert(mode)
    if size and changed.size != size[::-1]:
        changed = changed.resize(size[::-1], Resampling.BILINEAR)
    return np.asarray(changed)
