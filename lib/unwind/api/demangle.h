/*
 * Symbols of C++ and Rust as people write them, by libiberty.
 *
 * A name is a stranger's: it can be made so that what it stands for is
 * exponentially larger, or takes exponentially long to find, and libiberty
 * bounds its depth only. So names with many references into themselves are not
 * touched, and output ends at a limit.
 */
#ifndef LIB_UNWIND_API_DEMANGLE_H
#define LIB_UNWIND_API_DEMANGLE_H

#include "lib/unwind/unwind.h"

/*
 * A name is a tree whose branches may be references to others ("S1_", "T_",
 * "B5_"). With n of them it has at most 3^(n/3) leaves: 130,000 here, some
 * milliseconds. Of 56,564 C++ names that LLVM, clang and libstdc++ export
 * three have more.
 */
#define DEMANGLE_REFERENCES_MAX 32
/* libiberty takes no C++ name beyond (DEMANGLE_RECURSION_LIMIT), nor we Rust's.
 */
#define DEMANGLE_NAME_MAX 1024

#endif
