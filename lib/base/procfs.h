/*
 * Files below /proc/PID (proc(5)): their paths, and the numbers in their texts.
 * Reading one at once is lib/base/small_file.h.
 */
#ifndef LIB_BASE_PROCFS_H
#define LIB_BASE_PROCFS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* A text of stat or status: of the kernel's making, and mostly much shorter. */
#define PROCFS_TEXT_MAX 4096

/* A pid in all of its namespaces: MAX_PID_NS_LEVEL of the kernel, and ours. */
#define PROCFS_NAMESPACES_MAX 33

/* Holds map_files/ and two addresses, or three numbers. */
struct procfs_path {
	char text[96];
};

/*
 * "/proc/PID/" and what format makes, for use in place:
 * open(procfs_path(pid, "maps").text, ...). The text lives until the end of
 * that expression.
 */
struct procfs_path procfs_path(int64_t pid, const char *format, ...) printf_like(2, 3);

/* "/proc/self/fd/FD", likewise. */
struct procfs_path procfs_own_fd(int fd);

/*
 * Reads where the link at path leads, up to size - 1 bytes and a NUL. Returns
 * 0, or readlink(2)'s error: ret is "" then. size is at least 1.
 */
must_check int procfs_link(const char *path, char *ret, size_t size);

/*
 * Field n (at least 3) of a text of stat: where it begins, with blanks before
 * it. NULL: the text ends before it. The name, field 2, may hold any byte.
 */
const char *procfs_stat_field(const char *text, int n);

/* That field as a number; 0 where there is none. */
uint64_t procfs_stat_number(const char *text, int n);

/*
 * The numbers in the line of a text of status that begins with key, which is
 * given with the newline before it: the kernel escapes newlines in names.
 * Returns how many there are, at most max.
 */
size_t procfs_numbers(const char *text, const char *key, int base, uint64_t *ret, size_t max);

#endif
