/*
 * The release and the environment that the chunks of a target get at Sentry,
 * where the user has not set them: from the target's environment variables, or
 * from its executable.
 *
 * daemon/unwind/program.c decides which source counts. All strings here are the
 * target's choice, so they pass release_clean() before they are sent or logged.
 */
#ifndef DAEMON_UNWIND_RELEASE_H
#define DAEMON_UNWIND_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/msg/sizes.h"
#include "lib/unwind/unwind.h"

/* Each is "" if it is not set. */
struct release_names {
	char release[MSG_TEXT_MAX];
	char environment[MSG_TEXT_MAX];
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
 * Makes a release of an executable, "redis-server@15dfff3239aa": its file name and
 * the first 12 digits of its build-id. size is 160 at least.
 *
 * If the image cannot be read, because the process has ended, the release is that
 * of an earlier process with the same path exe and the same file (FILE_KIND_PROGRAM).
 * The last RELEASE_KNOWN_MAX releases are kept for that. If there is none, returns
 * false, and the release is "redis-server@unknown".
 */
#define RELEASE_KNOWN_MAX 256
bool release_of_image(const char *exe, const char *file, struct unwind_space *space, char *ret,
		      size_t size);

/*
 * Returns true the first time that it gets this release, so that a hundred
 * processes of one program cause one log line. After RELEASE_SEEN_MAX releases it
 * returns true for each new one.
 */
#define RELEASE_SEEN_MAX 256
bool release_is_new(const char *release);

/*
 * Replaces control characters and bytes that are not UTF-8 by '_'. Sentry rejects
 * both in a release.
 */
void release_clean(char *text);

#endif
