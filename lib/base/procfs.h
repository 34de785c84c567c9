/*
 * Makes paths below /proc/PID (proc(5)), and parses the texts of the files stat and status there.
 * To read such a file use small_file_read().
 */
#ifndef LIB_BASE_PROCFS_H
#define LIB_BASE_PROCFS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* Size of a buffer for the text of stat or status, which is usually much shorter. */
#define PROCFS_TEXT_MAX 4096
/*
 * Size for status if a line after "Groups:" is needed, as NSpid, Threads, and those of signals,
 * capabilities and Seccomp are: the line of groups can list a thousand.
 */
#define PROCFS_STATUS_MAX 16384

/* The most pids of a process, one in each pid namespace: the kernel's MAX_PID_NS_LEVEL plus one. */
#define PROCFS_NAMESPACES_MAX 33

/* A path, with room for "map_files/" and two addresses, or for three numbers. */
struct procfs_path {
	char text[96];
};

/*
 * Returns "/proc/PID/" followed by the formatted text, for use within an expression:
 * open(procfs_path(pid, "maps").text, ...). The text is valid until the end of that expression. A
 * longer path is cut off.
 */
struct procfs_path procfs_path(int64_t pid, const char *format, ...) printf_like(2, 3);

/* Returns "/proc/self/fd/FD". The text is valid as long as that of procfs_path(). */
struct procfs_path procfs_own_fd(int fd);

/*
 * Reads the symbolic link at path, such as /proc/PID/exe: writes the path that it points to, and a
 * NUL, to ret. size is the size of ret, at least 2. A longer text is cut off without an error.
 * Returns 0, or the error of readlink(2) with ret set to "".
 */
must_check int procfs_link(const char *path, char *ret, size_t size);

/*
 * Returns a pointer to the blank before field n (at least 3) in a text of stat; NULL if the text
 * ends before the field. Fields are counted from the last ")", because the name, field 2, may
 * contain any byte.
 */
const char *procfs_stat_field(const char *text, int n);

/* Returns field n of a text of stat as a decimal number; 0 if the field does not exist. */
uint64_t procfs_stat_number(const char *text, int n);

/*
 * Parses the numbers in a line of a text of status or limits. key is the beginning of the line,
 * with the newline before it: "\nUid:". Reason for the newline: the kernel escapes newlines in the
 * process's name, so a name cannot fake the key. base is that of strtoull(3). Writes at most max
 * numbers to ret, and returns how many; 0 if there is no such line.
 */
size_t procfs_numbers(const char *text, const char *key, int base, uint64_t *ret, size_t max);

#endif
