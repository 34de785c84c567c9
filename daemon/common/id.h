/* Random ids as Sentry wants them: a UUID of version 4 as 32 hex digits. */
#ifndef DAEMON_COMMON_ID_H
#define DAEMON_COMMON_ID_H

#include <stdbool.h>

#include "daemon/msg/msg.h"

void id_make(char ret[MSG_ID_SIZE]);

/* 32 lower-case hex digits and a NUL. */
bool id_is_one(const char text[MSG_ID_SIZE]);

#endif
