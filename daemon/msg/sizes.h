/*
 * The sizes of the texts that messages carry, in bytes with the NUL. They are
 * not in daemon/msg/msg.h, because the configuration and the ids use them, too.
 */
#ifndef DAEMON_MSG_SIZES_H
#define DAEMON_MSG_SIZES_H

#define MSG_TEXT_MAX	 256 /* release, environment, platform: Sentry allows 200 characters */
#define MSG_DSN_MAX	 1024
#define MSG_PATTERNS_MAX 1024 /* a list of patterns of files */
#define MSG_NAME_MAX	 256  /* a file name (NAME_MAX), or a build-id in hex (128 digits) */
#define MSG_ID_SIZE	 33   /* 32 hex digits */

#endif
