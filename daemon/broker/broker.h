/*
 * The state of the whole broker, which is the process sentry-profd. There is one struct broker.
 * Only the files directly in daemon/broker (main.c, turn.c, ...) use it. Comments call these files
 * the broker's root. The broker has one thread, which never waits for capture, unwind or ship
 * without a timeout.
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
	struct modules modules;
	struct requests requests;
	struct command command;
	struct output_conversion conversion;
	struct progress progress;
	struct times times;
	struct notify notify;
	int stats_fd;		 /* the file of --stats; -1: none */
	uint64_t each_second_ns; /* when each_second() of turn.c last ran, by clock_mono_ns() */
	bool table_awaited;	 /* MSG_TABLE was sent to an unwind process and has no answer */
};

#endif
