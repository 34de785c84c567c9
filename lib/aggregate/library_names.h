/*
 * The names of the functions of the C library, the C++ library and the compiler's
 * runtime library, as a table of hashes. A statically linked executable has these
 * functions in its own file, so in_app() recognises them by their names.
 *
 * library_names.sh makes the table at build time, from the build machine's
 * libraries.
 */
#ifndef LIB_AGGREGATE_LIBRARY_NAMES_H
#define LIB_AGGREGATE_LIBRARY_NAMES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Hashes of the names, ascending (library_names_hash() in in_app.c). With 64 bits, a
 * collision with another name is unlikely even among a million names. The hashes take
 * 100 KB, the names would take 500. library_names_n is 0 if no library was found.
 */
extern const uint64_t library_names[];
extern const size_t library_names_n;

#endif
