/*
 * The version of this build, as --version prints it: "0.1.0 (commit 1a2b3c4d5e6f)", or "0.1.0"
 * where the build does not know the commit.
 *
 * The macro SENTRY_PROFD_VERSION, which the Makefile defines, is the version without the commit. It
 * is sent to servers and shown in the status, where `sentry-profctl doctor` compares it with its
 * own.
 */
#ifndef DAEMON_COMMON_VERSION_H
#define DAEMON_COMMON_VERSION_H

/*
 * The Makefile generates the definition, for the executables only, so that a commit relinks these
 * and compiles nothing else. Tests define version_text themselves.
 */
extern const char version_text[];

#endif
