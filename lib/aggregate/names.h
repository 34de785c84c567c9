/* What things are called for a person: names of threads and of files. */
#ifndef LIB_AGGREGATE_NAMES_H
#define LIB_AGGREGATE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/unwind/unwind.h"

/*
 * The longest symbol or path that is kept whole, in bytes, NUL included:
 * PATH_MAX. Few mangled C++ names are longer; those are cut.
 */
#define NAME_SIZE 4096

/* A comm in which each byte became U+FFFD, NUL included. */
#define THREAD_NAME_SIZE (3 * COMM_SIZE + 1)

/*
 * A thread's name from its comm (COMM_SIZE bytes at most are read, up to a
 * NUL). The main thread has, unless it gave itself another, the executable's
 * name there: it is called "main" then.
 *
 * That name is the one that exec was given, which is a link's if it was called
 * by one: so it is that of the file, main_path, or that of main_argv0, of which
 * only the first word counts: a program may have written a title there
 * ("redis-server *:6379"), and part of that into comm as well, which then is a
 * name that it gave itself. Both may be "".
 */
void names_thread(const char *comm, size_t comm_size, bool is_main, const char *main_path,
		  const char *main_argv0, char out[THREAD_NAME_SIZE]);

/* The part behind the last slash; path itself if that is empty. */
const char *names_base(const char *path);

#endif
