/* How a body is compressed on its way to the server. */
#ifndef LIB_SHIP_COMPRESSION_H
#define LIB_SHIP_COMPRESSION_H

enum compression {
	COMPRESSION_GZIP, /* RFC 1952 */
	COMPRESSION_ZSTD, /* RFC 8878 */
};
#define COMPRESSION_N (COMPRESSION_ZSTD + 1)

#endif
