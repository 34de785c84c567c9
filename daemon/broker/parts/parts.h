/*
 * The parts of the broker together, as control/ and report/ use them. A part knows the parts
 * below it by pointers of its own (wiring.h). From below: state, files, children, delivery,
 * targets, discovery.
 */
#ifndef DAEMON_BROKER_PARTS_PARTS_H
#define DAEMON_BROKER_PARTS_PARTS_H

#include "daemon/broker/children/child.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/discovery/discovery.h"
#include "daemon/broker/files/files.h"
#include "daemon/broker/files/quarantine.h"
#include "daemon/broker/state/state.h"
#include "daemon/broker/targets/governor.h"
#include "daemon/broker/targets/targets.h"
#include "daemon/common/limitation.h"

struct parts {
	struct state state;
	struct limitation_facts limitation_facts; /* what the broker has to do without */
	struct files *files;
	struct quarantine quarantine;
	struct children children;
	struct delivery delivery;
	struct targets targets;
	struct governor governor;
	struct discovery *discovery; /* NULL: no sections, so no processes are to be found */
};

#endif
