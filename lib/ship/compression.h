/*
 * The compression of a request's body. Apart from compressor.h, because daemon/config, which names
 * them, links no library for compression.
 */
#ifndef LIB_SHIP_COMPRESSION_H
#define LIB_SHIP_COMPRESSION_H

enum compression {
	COMPRESSION_GZIP, /* RFC 1952 */
	COMPRESSION_ZSTD, /* RFC 8878 */
};
#define COMPRESSION_N (COMPRESSION_ZSTD + 1)

#endif
