/*
 * The state of the whole broker, which is the process sentry-profd. main.c defines the only struct
 * broker, wiring.h sets the pointers between its members, and turn.h calls the members' functions.
 * Only the files directly in daemon/broker (main.c, turn.c, ...) use the struct. Comments call
 * these files the broker's root. The broker has one thread, which never waits for capture, unwind
 * or ship without a timeout.
 */
#ifndef DAEMON_BROKER_BROKER_H
#define DAEMON_BROKER_BROKER_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/control/requests.h"
#include "daemon/broker/discovery/command.h"
#include "daemon/broker/output_conversion.h"
#include "daemon/broker/report/notify.h"
#include "daemon/broker/report/modules.h"
#include "daemon/broker/report/progress.h"
#include "daemon/broker/report/times.h"

struct broker {
	struct modules modules;		     /* state, files, children, ... (report/modules.h) */
	struct requests requests;	     /* those on the daemon's socket */
	struct command command;		     /* the command of `-- COMMAND`; pid 0: none */
	struct output_conversion conversion; /* for --output FILE */
	struct progress progress;	     /* the line on the terminal */
	struct times times;		     /* for the log lines of times_log() at the end */
	struct notify notify;		     /* messages to the service manager */
	int stats_fd;			     /* the file of --stats; -1: none */
	uint64_t each_second_ns; /* when each_second() of turn.c last ran, by clock_mono_ns() */
	/* An unwind process has not answered MSG_TABLE yet (shutdown_print_tables). */
	bool table_awaited;
};

#endif
