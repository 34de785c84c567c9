/*
 * The state of the broker's root (main.c, turn.c, inbox.c, ...), which drives all parts.
 *
 * Single-threaded, one broker per process; a call never waits for a child.
 */
#ifndef DAEMON_BROKER_BROKER_H
#define DAEMON_BROKER_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/command.h"
#include "daemon/broker/control/commands.h"
#include "daemon/broker/parts/parts.h"
#include "daemon/broker/picture.h"
#include "daemon/broker/report/notify.h"
#include "daemon/broker/report/progress.h"

struct broker {
	struct parts parts;
	struct commands commands;
	struct command command;
	struct picture picture;
	struct progress progress;
	struct notify notify;
	int stats_fd;	       /* of --stats; -1: none */
	uint64_t second_ns;    /* when turn.c last did each_second */
	size_t tables_awaited; /* MSG_TABLE without an answer: finish.c */
};

#endif
