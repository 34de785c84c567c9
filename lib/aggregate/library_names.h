/*
 * A table of the names, as hashes, of the functions of the C library, the C++ library and the
 * compiler's runtime library. A statically linked executable has these functions in its own file,
 * so in_app() recognises them by this table.
 *
 * library_names.sh makes the table at build time, from the build machine's libraries.
 */
#ifndef LIB_AGGREGATE_LIBRARY_NAMES_H
#define LIB_AGGREGATE_LIBRARY_NAMES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Hashes of the names (library_names_hash() in in_app.c), in ascending order. With 64 bits, a
 * collision with another name is unlikely even among a million names. The hashes take
 * 100 KB, the names would take 500 KB. library_names_n, the number of hashes, is 0 if no library
 * was found.
 */
extern const uint64_t library_names[];
extern const size_t library_names_n;

#endif
