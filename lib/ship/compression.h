/*
 * The compressions of a request's body: see compressor.h. They are in a header of their own because
 * daemon/config names them, and must not include compressor.h, which needs zlib and zstd.
 */
#ifndef LIB_SHIP_COMPRESSION_H
#define LIB_SHIP_COMPRESSION_H

enum compression {
	COMPRESSION_GZIP, /* RFC 1952 */
	COMPRESSION_ZSTD, /* RFC 8878 */
};
#define COMPRESSION_N (COMPRESSION_ZSTD + 1)

#endif
