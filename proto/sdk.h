/*
 * The name and version of this program for the server: in payloads, envelope headers,
 * X-Sentry-Auth and User-Agent.
 */
#ifndef PROTO_SDK_H
#define PROTO_SDK_H

#define SDK_NAME "sentry.native.profd"

/* A semantic version without a prefix ("1.2.3"). The build defines SENTRY_PROFD_VERSION. */
#define SDK_VERSION SENTRY_PROFD_VERSION

#endif
