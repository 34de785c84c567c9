/*
 * Lines for the operator on stderr: "sentry-profd: warning: text". One event,
 * one line: control bytes in the text are shown escaped, so that nothing a
 * target wrote can make up a line of its own.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>

#include "lib/base/util.h"

/* name stands before every line, a string literal. debug: log_debug shows. */
void log_init(const char *name, bool debug);

void log_error(const char *format, ...) printf_like(1, 2);
void log_warning(const char *format, ...) printf_like(1, 2);
void log_debug(const char *format, ...) printf_like(1, 2);

#endif
