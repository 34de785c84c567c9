/*
 * Makes paths below /proc/PID (proc(5)), and parses the texts of stat and status. To read such a
 * file use small_file_read().
 */
#ifndef LIB_BASE_PROCFS_H
#define LIB_BASE_PROCFS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* Size of a buffer for the text of stat or status, which is usually much shorter. */
#define PROCFS_TEXT_MAX 4096
/* The same for a status that may have a thousand supplementary groups before what is read of it. */
#define PROCFS_STATUS_MAX 16384

/* The most pids of a process, one for each namespace: MAX_PID_NS_LEVEL of the kernel, and one. */
#define PROCFS_NAMESPACES_MAX 33

/* Has room for "map_files/" and two addresses, or for three numbers. */
struct procfs_path {
	char text[96];
};

/*
 * Returns "/proc/PID/" followed by the formatted text, for use within an expression:
 * open(procfs_path(pid, "maps").text, ...). The text is valid until the end of that expression.
 */
struct procfs_path procfs_path(int64_t pid, const char *format, ...) printf_like(2, 3);

/* Returns "/proc/self/fd/FD" in the same way. */
struct procfs_path procfs_own_fd(int fd);

/*
 * Reads the target of the symbolic link at path, at most size - 1 bytes and a NUL; size is at least
 * 1. Returns 0, or the error of readlink(2) with ret set to "".
 */
must_check int procfs_link(const char *path, char *ret, size_t size);

/*
 * Returns the start of field n (at least 3) in a text of stat, with the blank before it; NULL if
 * the text ends before the field. Fields are counted from the last ")", because the name, field 2,
 * may contain any byte.
 */
const char *procfs_stat_field(const char *text, int n);

/* Returns that field as a number; 0 if it does not exist. */
uint64_t procfs_stat_number(const char *text, int n);

/*
 * Parses the numbers in the line of a text of status that begins with key. key starts with the
 * newline before the line, which a process's name cannot fake because the kernel escapes newlines
 * in names. Returns how many numbers there are, at most max.
 */
size_t procfs_numbers(const char *text, const char *key, int base, uint64_t *ret, size_t max);

#endif
