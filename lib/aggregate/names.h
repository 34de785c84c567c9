/*
 * Makes the names that a profile shows: those of threads from their comm (proc(5), the kernel's
 * name of a thread), and those of files from their paths. aggregate.c names a thread at each
 * RECORD_THREAD, and tells threads apart when it closes a chunk.
 */
#ifndef LIB_AGGREGATE_NAMES_H
#define LIB_AGGREGATE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/string_pool.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

/*
 * Size of a buffer for a symbol or a path, in bytes with the NUL: PATH_MAX. A longer one is cut
 * off. Few mangled C++ names are longer.
 */
#define NAME_SIZE 4096

/* Size of a buffer for a thread name: each byte of a comm may become U+FFFD, of 3 bytes. */
#define THREAD_NAME_SIZE (3 * COMM_SIZE + 1)

/*
 * Makes a thread's name from its comm: comm_size bytes, of which at most COMM_SIZE are
 * read, up to a NUL. Control characters and bytes that are not UTF-8 become U+FFFD. The
 * name of the main thread (is_main) is "main" as long as its comm is the name of the
 * executable, and not a name that the program has set.
 *
 * The kernel makes the comm from the path that was executed, which may be a symbolic link: its file
 * name, cut to 15 bytes. So the comm is compared with the first 15 bytes of two file names: that of
 * main_path, the path of the executable, and that in main_argv0, the argv[0] of the process. Only
 * the first word of main_argv0 is compared, because a program may have written a title there
 * ("redis-server *:6379"). main_path and main_argv0 may each be "".
 */
void names_thread(const char *comm, size_t comm_size, bool is_main, const char *main_path,
		  const char *main_argv0, char out[THREAD_NAME_SIZE]);

/*
 * Tells the n threads apart by their names. If several threads have the same name, the id that the
 * profile shows (profile_thread.id, or the tid if id is 0) is appended to each: "worker (4711)".
 * Empty names stay empty. New names belong to text. Returns 0 or -ENOMEM.
 */
must_check int names_tell_apart(struct profile_thread *threads, size_t n, struct string_pool *text);

/* Returns path behind its last slash; path itself if it has no slash or ends with one. */
const char *names_base(const char *path);

#endif
