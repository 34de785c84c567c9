/*
 * Writes the bytes of the log to stderr. sentry-profd, and the children whose lines it relays
 * (log_relay), must not wait for the reader of stderr: a log driver that stalls, or a terminal that
 * ^S has stopped, would stop them. These processes call log_output_never_waits(). Other programs,
 * such as sentry-profctl, do not call it, and wait.
 */
#ifndef DAEMON_COMMON_LOG_OUTPUT_H
#define DAEMON_COMMON_LOG_OUTPUT_H

#include <stddef.h>

/*
 * From now on log_output_write() does not wait. One exception is left: a terminal that this
 * function cannot open again. If ^S comes between poll(2) and write(2) of such a terminal,
 * log_output_write() waits. Call this function before the process gives up privileges: it may need
 * them to open the pipe or the terminal.
 *
 * O_NONBLOCK is a flag of the open file description, which other processes may share. So this
 * function opens a pipe or a terminal again, and descriptor 2 gets the new description. A process
 * that got descriptor 2 before, such as the command of `sentry-profd -- COMMAND`, keeps the old
 * description. If a pipe cannot be opened again, log_output_write() uses splice(2), which has a
 * flag not to wait, as send(2) has for a socket. Nothing changes for a regular file, which has no
 * reader to wait for.
 */
void log_output_never_waits(void);

/*
 * Writes to stderr. Returns the number of bytes that were written: fewer than size if stderr has no
 * room for more, or after an error.
 */
size_t log_output_write(const char *bytes, size_t size);

#endif
