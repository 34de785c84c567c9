/*
 * What a target's release is called where nobody has said it.
 */
#ifndef DAEMON_UNWIND_RELEASE_H
#define DAEMON_UNWIND_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/unwind/unwind.h"

/*
 * "redis-server@15dfff3239aa": the name of the executable and the first 12
 * digits of its build-id. Where the image cannot be read, because the process
 * has ended, it is the release that another process of the same executable had:
 * of the same path and file (FILE_KIND_PROGRAM). size: 160 at least. False: neither
 * is there, and the release is "redis-server@unknown".
 */
#define RELEASE_KNOWN_MAX 256
bool release_of_image(const char *exe, const char *file, struct unwind_space *space, char *ret,
		      size_t size);

/*
 * True the first time that it is asked of a release: a hundred processes of a
 * program need no more than one line. Beyond RELEASE_TOLD_MAX, always.
 */
#define RELEASE_TOLD_MAX 256
bool release_is_new(const char *release);

/*
 * Makes it what may be sent. Sentry takes no control characters in a release,
 * and nobody text that is not UTF-8: the target chose these bytes.
 */
void release_clean(char *text);

#endif
