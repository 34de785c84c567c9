/* Which instances are to be profiled. */
#ifndef DAEMON_LIFECYCLE_H
#define DAEMON_LIFECYCLE_H

#include <stdbool.h>

#include "daemon/instance.h"

bool lifecycle_wants(const struct instance *i);

#endif
