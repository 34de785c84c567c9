/*
 * What this program calls itself to a server: in payloads, envelope headers,
 * X-Sentry-Auth and User-Agent.
 */
#ifndef PROTO_SDK_H
#define PROTO_SDK_H

#define SDK_NAME "sentry.native.profd"

/* Bare SemVer. */
#define SDK_VERSION SENTRY_PROFD_VERSION

#endif
