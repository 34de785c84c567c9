/*
 * Names of the functions of the C library, the C++ library and the compiler's
 * own: in a static executable they lie in the application's file. The names are
 * those of the build machine; library_names.sh makes the table.
 */
#ifndef LIB_AGGREGATE_LIBRARY_NAMES_H
#define LIB_AGGREGATE_LIBRARY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Hashes of the names, ascending. 64 bits: of a million other names none has
 * the hash of one of these. So 100 KB stand for 500.
 */
extern const uint64_t library_names[];
extern const size_t library_names_n;

/*
 * Whether a raw symbol is one of them, whatever the compiler has put behind it
 * (".part.0", ".cold").
 */
bool library_names_has(const char *symbol);

#endif
