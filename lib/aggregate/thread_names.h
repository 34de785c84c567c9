/*
 * Names of a chunk's threads that can be told apart.
 */
#ifndef LIB_AGGREGATE_THREAD_NAMES_H
#define LIB_AGGREGATE_THREAD_NAMES_H

#include <stddef.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "proto/profile.h"

/*
 * Where several of the n threads have the same name, each gets its number
 * behind it, "worker (4711)": the one that the payload calls it by. "" stays,
 * since it is no name. New names belong to text. Returns 0 or -ENOMEM.
 */
must_check int thread_names_tell_apart(struct profile_thread *threads, size_t n, struct text *text);

#endif
