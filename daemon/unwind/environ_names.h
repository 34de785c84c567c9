/*
 * What a process's environment says of its release and its environment at
 * Sentry.
 */
#ifndef DAEMON_UNWIND_ENVIRON_NAMES_H
#define DAEMON_UNWIND_ENVIRON_NAMES_H

#include <stddef.h>

#include "daemon/msg/sizes.h"

/* Each is "" where nothing is said. The bytes are the process's choice. */
struct environ_names {
	char release[MSG_TEXT_MAX];
	char environment[MSG_TEXT_MAX];
};

/*
 * Reads the len bytes of an environment (proc(5), environ). SENTRY_RELEASE and
 * SENTRY_ENVIRONMENT count first. Then OpenTelemetry's variables: the release
 * is NAME@VERSION, with OTEL_SERVICE_NAME or service.name, and service.version;
 * the environment is deployment.environment.name. These attributes stand in
 * OTEL_RESOURCE_ATTRIBUTES, "key=value,key=value" with %XX for what is not
 * plain; of one that is malformed nothing counts. Without a version there is no
 * release of OpenTelemetry. A text that does not fit is as if it were not
 * there.
 *
 * Source: OpenTelemetry specification, "SDK environment variables" and
 * "Resource SDK"; semantic conventions, resources service and deployment.
 */
void environ_names_read(const char *text, size_t len, struct environ_names *ret);

#endif
