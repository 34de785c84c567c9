/*
 * Names that a profile shows: of threads, from their comm, and of files, from
 * their paths.
 */
#ifndef LIB_AGGREGATE_NAMES_H
#define LIB_AGGREGATE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

/*
 * Size of the longest symbol or path that is kept whole, in bytes with the NUL: PATH_MAX.
 * A longer one is cut off at this size. Few mangled C++ names are longer.
 */
#define NAME_SIZE 4096

/* Size of the longest thread name: a comm in which each byte became U+FFFD, with the NUL. */
#define THREAD_NAME_SIZE (3 * COMM_SIZE + 1)

/*
 * Makes a thread's name from its comm: comm_size bytes, of which at most COMM_SIZE are
 * read, up to a NUL. Control characters and bytes that are not UTF-8 become U+FFFD. The
 * name of the main thread (is_main) is "main" as long as its comm is the name of the
 * executable, and not a name that the program has set.
 *
 * The kernel makes the comm from the path that was executed. The path may be a symbolic
 * link, so the comm is compared both with the file name of main_path, the executable, and
 * with the file name in main_argv0. Only the first word of main_argv0 is compared, because
 * a program may have written a title there ("redis-server *:6379"). main_path and
 * main_argv0 may be "".
 */
void names_thread(const char *comm, size_t comm_size, bool is_main, const char *main_path,
		  const char *main_argv0, char out[THREAD_NAME_SIZE]);

/*
 * Makes the names of the n threads unique: if several threads have the same name, the id
 * that the payload shows (id, or tid if id is 0) is appended to each, "worker (4711)". An
 * empty name stays empty. New names belong to text. Returns 0 or -ENOMEM.
 */
must_check int names_tell_apart(struct profile_thread *threads, size_t n, struct text *text);

/* Returns the part of path after the last slash, or path if that part is empty. */
const char *names_base(const char *path);

#endif
