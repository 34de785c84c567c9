/*
 * The command `sentry-profctl doctor [PID]`: looks for what prevents good profiles, on this
 * machine, in the daemon's configuration, at the servers, and in a process. Prints a line
 * for each finding (daemon/common/finding.h), with what the user can do. Changes nothing.
 *
 * It starts up to five child processes:
 * - a sentry-profd-unwind that prints its version;
 * - a fork of itself, which it tries to trace, to see whether tracing is permitted;
 * - if no running daemon answers: a sentry-profd that checks its configuration and the servers;
 * - with PID: a sentry-profd-unwind that reads the files of the process, and a dpkg-query.
 */
#ifndef DAEMON_CTL_DOCTOR_DOCTOR_H
#define DAEMON_CTL_DOCTOR_DOCTOR_H

/*
 * Runs the command; argv[0] is its name. Returns the exit status: EXIT_SUCCESS if all is
 * well, 3 if there are warnings only, EXIT_FAILURE if there is a fault, or 2 for wrong
 * usage.
 */
int doctor_run(int argc, char **argv);

/* The part of --help-all about this command. */
extern const char doctor_help[];

#endif
