/*
 * How long the broker waits for other processes' work. Who hangs is given up
 * after seconds; who has something to do, and no processor to do it with, as on
 * a machine that its host has left, is waited for.
 */
#ifndef DAEMON_BROKER_CHILDREN_PATIENCE_H
#define DAEMON_BROKER_CHILDREN_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* Nothing at all is done for so long: nobody works at it. */
#define PATIENCE_IDLE_NS (3 * NS_PER_SEC)
/* Less than a service manager waits for us, 90 s as a rule. */
#define PATIENCE_BUSY_NS (30 * NS_PER_SEC)

struct patience {
	uint64_t began_ns;
	uint64_t busy_ns;
};

void patience_start(struct patience *p, uint64_t now_ns);

/*
 * When it is over, as far as is known; to be asked several times in
 * PATIENCE_IDLE_NS. busy: somebody who is waited for works, or waits for a
 * processor.
 */
uint64_t patience_end_ns(struct patience *p, uint64_t now_ns, bool busy);

#endif
