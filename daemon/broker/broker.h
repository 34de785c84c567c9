/*
 * The parts of the broker together, for its root (main.c, turn.c, inbox.c, ...), for
 * control/ and for report/. A part below these knows only the parts that it uses: wiring.h
 * tells it of them.
 *
 * Single-threaded, one broker per process; a call never waits for a child.
 */
#ifndef DAEMON_BROKER_BROKER_H
#define DAEMON_BROKER_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/command.h"
#include "daemon/broker/control/clients.h"
#include "daemon/broker/control/record.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/discovery/discovery.h"
#include "daemon/broker/files/files.h"
#include "daemon/broker/files/quarantine.h"
#include "daemon/broker/report/notify.h"
#include "daemon/broker/picture.h"
#include "daemon/broker/report/progress.h"
#include "daemon/broker/state/state.h"
#include "daemon/broker/targets/governor.h"
#include "daemon/broker/targets/targets.h"
#include "daemon/common/limitation.h"

struct control;
struct inspection;

struct broker {
	struct state state;
	struct files *files;
	struct quarantine quarantine;
	struct children children;
	struct delivery delivery;
	struct targets targets;
	struct governor governor;
	struct discovery *discovery; /* NULL: no sections, so no processes are to be found */

	struct control *control; /* NULL: there is no socket */
	struct clients clients;
	struct records records;
	struct inspection *inspection; /* inspect.c; NULL: none goes on */

	struct command command;
	struct picture picture;
	struct progress progress;
	struct notify notify;
	struct limitation_facts limitation_facts;
	int stats_fd;	       /* of --stats; -1: none */
	uint64_t second_ns;    /* when turn.c last did each_second */
	size_t tables_awaited; /* MSG_TABLE without an answer: finish.c */
};

#endif
