/*
 * The release and the environment that the chunks of a target get at Sentry,
 * where the user has not set them: from the target's environment variables, or
 * from its executable.
 *
 * daemon/unwind/program.c decides which source counts. The target chooses all strings
 * here, so the caller passes each to release_clean() before it is sent or logged.
 */
#ifndef DAEMON_UNWIND_RELEASE_H
#define DAEMON_UNWIND_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/msg/msg.h"
#include "lib/unwind/unwind.h"

/* What the environment of a process says; "": not set. */
struct release_names {
	char release[MSG_TEXT_MAX];
	char environment[MSG_TEXT_MAX];
	bool declines; /* SENTRY_PROFILER=off: sections leave the process out */
};

/*
 * Reads the len bytes of a process's environment (proc(5), environ).
 *
 * SENTRY_RELEASE and SENTRY_ENVIRONMENT come first. Then OpenTelemetry's
 * variables: the release is NAME@VERSION, where the name is OTEL_SERVICE_NAME or
 * service.name, and the version is service.version; without a version there is
 * no release. The environment is deployment.environment.name. These attributes
 * are in OTEL_RESOURCE_ATTRIBUTES, "key=value,key=value" with %XX escapes; a
 * malformed list is ignored as a whole. A value that does not fit is ignored.
 *
 * Source: OpenTelemetry specification, "SDK environment variables" and
 * "Resource SDK"; semantic conventions, resources service and deployment.
 */
void release_of_environ(const char *text, size_t len, struct release_names *ret);

/*
 * Makes a release from an executable, such as "redis-server@15dfff3239aa": its file name,
 * and the first 12 hex digits of its build-id or, without one, of the identifier made from
 * .text (lib/unwind/elf/build_id.h). exe and file are those of struct program_identity.
 * size is at least 160. Returns true.
 *
 * If the image cannot be read, because the process has ended, this takes the release of an
 * earlier process with the same exe and file, and returns true. The last
 * RELEASE_KNOWN_MAX releases are kept for that. If there was no such process, the release
 * is "redis-server@unknown", and the function returns false.
 */
#define RELEASE_KNOWN_MAX 256
bool release_of_image(const char *exe, const char *file, struct unwind_space *space, char *ret,
		      size_t size);

/*
 * Returns true at the first call with this release, so that a hundred processes of one
 * program cause one log line. Only the first RELEASE_SEEN_MAX releases are remembered: any
 * other release is new at each call.
 */
#define RELEASE_SEEN_MAX 256
bool release_is_new(const char *release);

/*
 * Replaces control characters and bytes that are not UTF-8 by '_'. Sentry rejects
 * both in a release.
 */
void release_clean(char *text);

#endif
