/*
 * Checks a file name that comes from a target's file, such as a .gnu_debuglink section, before it
 * becomes the last component of a path.
 */
#ifndef LIB_BASE_FILE_NAME_H
#define LIB_BASE_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns whether text is a plain name: a string that is not empty and has its NUL within size
 * bytes. Its characters are printable ASCII without space and slash. The first one is not a dot.
 */
bool file_name_is_plain(const char *text, size_t size);

#endif
