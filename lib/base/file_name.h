/*
 * Names of files that a stranger wrote: which of them may become the last
 * component of a path.
 */
#ifndef LIB_BASE_FILE_NAME_H
#define LIB_BASE_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * True if text, of at most size bytes, ends with a NUL and is one component of
 * a path: printable ASCII without a space or a slash, no dot in front, not
 * empty.
 */
bool file_name_is_plain(const char *text, size_t size);

#endif
