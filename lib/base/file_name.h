/*
 * Checks a file name that comes from a target's file, such as a .gnu_debuglink section, before it
 * becomes the last component of a path.
 */
#ifndef LIB_BASE_FILE_NAME_H
#define LIB_BASE_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns whether text is a plain name: at least one character, all of them printable ASCII other
 * than space and slash, the first one no dot, and a NUL within size bytes.
 */
bool file_name_is_plain(const char *text, size_t size);

#endif
