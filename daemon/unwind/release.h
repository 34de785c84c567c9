/*
 * Finds out the release and the environment of a target for Sentry, if the user has not set them:
 * from the target's environment variables, or from its executable. The release is the version of
 * the program; the environment is a name such as "production".
 *
 * daemon/unwind/program.c decides which source counts. The target chooses all strings here, so the
 * caller passes each to release_clean() before it is sent or logged.
 */
#ifndef DAEMON_UNWIND_RELEASE_H
#define DAEMON_UNWIND_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/msg/msg.h"
#include "lib/unwind/unwind.h"

/* What the environment variables of a process say. A string is "" if it is not set. */
struct release_names {
	char release[MSG_TEXT_MAX];
	char environment[MSG_TEXT_MAX];
	bool declines; /* SENTRY_PROFILER=off: the process wants to be profiled only on request */
};

/*
 * Reads the variables of a process: len bytes of /proc/PID/environ (proc(5)).
 *
 * SENTRY_RELEASE and SENTRY_ENVIRONMENT come first. What they do not set comes from OpenTelemetry's
 * variables:
 * - The release is NAME@VERSION. NAME is OTEL_SERVICE_NAME or else the attribute service.name,
 *   VERSION the attribute service.version. If one is missing, there is no release.
 * - The environment is the attribute deployment.environment.name.
 * - The attributes are in OTEL_RESOURCE_ATTRIBUTES, "key=value,key=value" with %XX escapes. A
 *   malformed list is ignored as a whole.
 * A value that does not fit into *ret is ignored.
 *
 * Source: OpenTelemetry specification, "SDK environment variables" and "Resource SDK"; semantic
 * conventions, resources service and deployment.
 */
void release_of_environ(const char *text, size_t len, struct release_names *ret);

/*
 * Writes a release made from an executable, such as "redis-server@15dfff3239aa": its file name, and
 * the first 12 hex digits of its build-id or, without one, of the identifier made from .text
 * (lib/unwind/elf/build_id.h). exe: the path of the executable; if it is "", the file name is
 * "unknown". file: the device, inode and modification time of exe as text (struct
 * program_identity). space: the address space of the process, in which exe is mapped. size: of ret,
 * at least 160.
 *
 * If the executable has no identifier or cannot be read, usually because the process has ended, the
 * function writes the release that it made for an earlier process with the same exe and file. It
 * remembers the last RELEASE_KNOWN_MAX. If it remembers no such process, it writes
 * "redis-server@unknown" and returns false. In all other cases it returns true.
 */
#define RELEASE_KNOWN_MAX 256
bool release_of_image(const char *exe, const char *file, struct unwind_space *space, char *ret,
		      size_t size);

/*
 * Returns true at the first call with this release, so that a hundred processes of one program
 * cause one log line. The first RELEASE_SEEN_MAX releases are remembered; any other release is new
 * at each call.
 */
#define RELEASE_SEEN_MAX 256
bool release_is_new(const char *release);

/*
 * Replaces each ASCII control character and each byte that is not UTF-8 by '_', in the string text
 * itself. Sentry rejects both in a release.
 */
void release_clean(char *text);

#endif
