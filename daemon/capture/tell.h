/*
 * What capture says to the broker. A broker that is gone ends the process: the
 * kernel detaches.
 */
#ifndef DAEMON_CAPTURE_TELL_H
#define DAEMON_CAPTURE_TELL_H

#include <stdbool.h>

#include "daemon/msg/msg_capture.h"

/* See the messages: MSG_TARGET_STATE, MSG_RING_MADE, _BROKEN, _CAPTURE_DONE. */
void tell_state(uint32_t target, enum target_state state, int error);
void tell_ring_made(uint32_t ring, int fd); /* fd stays the caller's */
void tell_ring_broken(uint32_t ring);
void tell_done(void);

/* MSG_CHILD_BORN. False: the broker has no room for it now. */
bool tell_born(int32_t pid);

#endif
