/*
 * Makes short names of functions for tables. In a demangled C++ or Rust name the template arguments
 * become "<...>", the parameters "(...)", and std::basic_string of char becomes "std::string":
 *	std::vector<Item, std::allocator<Item>>::at(unsigned long)	std::vector<...>::at(...)
 * The content of brackets stays if it is not longer than the three dots. The type and the trait of
 * Rust's <TYPE as TRAIT>::f stay. Names of other languages stay as they are.
 *
 * Different names never get the same short name. If they would, the arguments or parameters in
 * which the names differ are shown, one after another from left to right, until the short names
 * differ. If that is not enough, the names stay whole: for example if one of them has
 * std::__cxx11::basic_string and the other std::basic_string, which both become "std::string".
 */
#ifndef LIB_BASE_SHORT_NAMES_H
#define LIB_BASE_SHORT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/string_pool.h"
#include "lib/base/util.h"

/* In bytes with the NUL: a longer name stays whole. Few demangled names are longer. */
#define SHORT_NAMES_SIZE 4096

/*
 * Writes the short names of the n names to the n elements of ret. Equal names get equal short
 * names. The pool text owns the strings of ret; names is not needed after the call. Returns 0 or
 * -ENOMEM.
 */
must_check int short_names_make(const char *const *names, size_t n, struct string_pool *text,
				const char **ret);

/*
 * As short_names_make(). But with is_full (the option --names full) copies the n pointers of names
 * to ret, allocates nothing, and returns 0.
 */
must_check int short_names_or_full(const char *const *names, size_t n, bool is_full,
				   struct string_pool *text, const char **ret);

#endif
