"""Bodies of requests, as their Content-Encoding says. Used by server.py."""

import ctypes
import gzip

# Python has no zstd before 3.14; the library is what ship links.
_zstd = ctypes.CDLL('libzstd.so.1')
_zstd.ZSTD_decompress.restype = ctypes.c_size_t
_zstd.ZSTD_decompress.argtypes = (ctypes.c_void_p, ctypes.c_size_t,
                                  ctypes.c_char_p, ctypes.c_size_t)
_zstd.ZSTD_isError.argtypes = (ctypes.c_size_t,)


def unzstd(body, size_max):
    """Raises ValueError if it is not whole frames and nothing else."""
    size = 1 << 20
    while True:
        out = ctypes.create_string_buffer(size)
        n = _zstd.ZSTD_decompress(out, size, body, len(body))
        if not _zstd.ZSTD_isError(n):
            return out.raw[:n]
        # It may have been too small: whether it was is not asked.
        if size >= size_max:
            raise ValueError('no zstd')
        size *= 4


def decode(encoding, body, size_max):
    """None if it is not what its encoding says."""
    try:
        if encoding == 'zstd':
            return unzstd(body, size_max)
        return gzip.decompress(body)
    except (OSError, EOFError, ValueError):
        return None
