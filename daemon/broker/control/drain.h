/*
 * Reading from strangers' sockets without taking the descriptors that they may
 * pass along. To drop the last reference to one can mean to wait as long as its
 * owner wants (a TCP socket with SO_LINGER, socket(7)), so none may be dropped
 * here. From Linux 6.16 on the kernel refuses them (SO_PASSRIGHTS): then
 * is_safe is true, and these are recv(2) and close(2).
 *
 * Before, a message is looked at before it is read, and a socket that has
 * descriptors in its queue is left to a child that is killed: who ends does not
 * wait (inet_release() in net/ipv4/af_inet.c). SIGCHLD tells of its end.
 */
#ifndef DAEMON_BROKER_CONTROL_DRAIN_H
#define DAEMON_BROKER_CONTROL_DRAIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/util.h"

/*
 * One message of fd, which is SOCK_SEQPACKET, without waiting. Returns its
 * length, 0 at the end, -EBADMSG if it has descriptors (it stays in the queue),
 * or -errno.
 */
must_check ssize_t drain_recv(int fd, bool is_safe, void *bytes, size_t size);

/* Closes *fd, with what is left in its queue. */
void drain_close(int *fd, bool is_safe);

#endif
