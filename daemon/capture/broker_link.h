/*
 * Sends the messages of capture to the broker, on the socket at descriptor MSG_FD
 * (daemon/msg/msg.h). If a message cannot be sent, the process exits with 1, and the kernel
 * detaches all tracees. A line on stderr gives the reason, except if the broker has ended.
 */
#ifndef DAEMON_CAPTURE_BROKER_LINK_H
#define DAEMON_CAPTURE_BROKER_LINK_H

#include <stdbool.h>

#include "daemon/msg/msg_capture.h"

/*
 * Send MSG_TARGET_STATE, MSG_RING_MADE, MSG_RING_BROKEN and MSG_CAPTURE_DONE
 * (daemon/msg/msg_capture.h). These functions wait while the socket is full.
 */
void broker_link_state(const struct msg_target_state *m);
void broker_link_ring_made(uint32_t ring, int fd); /* fd: its memory; stays the caller's */
void broker_link_ring_broken(uint32_t ring);
void broker_link_done(void);

/*
 * Send MSG_CHILD_BORN and MSG_EXEC_HELD for process pid, without waiting. Return true after
 * success. Return false, without an exit, if the socket is full or memory is short: the caller
 * tries again later.
 */
bool broker_link_born(int32_t pid);
bool broker_link_exec_held(int32_t pid);

#endif
