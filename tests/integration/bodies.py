"""Decodes bodies of requests by their Content-Encoding. Used by server.py."""

import ctypes
import gzip

# Python has no zstd before 3.14. The library is the one that ship links.
_zstd = ctypes.CDLL('libzstd.so.1')
_zstd.ZSTD_decompress.restype = ctypes.c_size_t
_zstd.ZSTD_decompress.argtypes = (ctypes.c_void_p, ctypes.c_size_t,
                                  ctypes.c_char_p, ctypes.c_size_t)
_zstd.ZSTD_isError.argtypes = (ctypes.c_size_t,)


def unzstd(body, size_max):
    """Decompresses data. Raises ValueError unless it consists of whole frames
    only."""
    size = 1 << 20
    while True:
        out = ctypes.create_string_buffer(size)
        n = _zstd.ZSTD_decompress(out, size, body, len(body))
        if not _zstd.ZSTD_isError(n):
            return out.raw[:n]
        # The buffer may have been too small for the frame; this is not
        # checked.
        if size >= size_max:
            raise ValueError('no zstd')
        size *= 4


def decode(encoding, body, size_max):
    """Returns the decoded body; None if it does not have this encoding."""
    try:
        if encoding == 'zstd':
            return unzstd(body, size_max)
        return gzip.decompress(body)
    except (OSError, EOFError, ValueError):
        return None
