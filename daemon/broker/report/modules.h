/*
 * The modules of the broker in one struct, for report/ and control/, which use all of them. Each of
 * the other modules uses only those below it, by pointers of its own (wiring.h). The folders of the
 * modules, from the lowest to the highest: state, files, children, delivery, targets, discovery.
 */
#ifndef DAEMON_BROKER_REPORT_MODULES_H
#define DAEMON_BROKER_REPORT_MODULES_H

#include "daemon/broker/children/child.h"
#include "daemon/broker/children/leak_check.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/discovery/discovery.h"
#include "daemon/broker/files/files.h"
#include "daemon/broker/files/quarantine.h"
#include "daemon/broker/state/state.h"
#include "daemon/broker/targets/governor.h"
#include "daemon/broker/targets/targets.h"

struct modules {
	struct state state;
	struct files *files;
	struct quarantine quarantine;
	struct children children;
	struct leak_check leak_check;
	struct delivery delivery;
	struct targets targets;
	struct governor governor;
	/* Exists in service mode. NULL: the command line names the processes (state/options.h). */
	struct discovery *discovery;
};

#endif
