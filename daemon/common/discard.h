/* The names of the reasons for which chunks do not arrive (DISCARD_LIST). */
#ifndef DAEMON_COMMON_DISCARD_H
#define DAEMON_COMMON_DISCARD_H

#include <stdint.h>

#include "proto/client_report.h"

/*
 * The name of a reason in figures, and Sentry's, which has fewer. reason: enum
 * discard or enum profile_fault.
 */
const char *discard_name(uint32_t reason);
enum client_report_reason discard_report(uint32_t reason);

#endif
