/*
 * Which file was an unwind process reading when it died? It shows the file's number in
 * a page that it shares with the broker; a file at which it has died three times is left
 * out (deadly.h).
 */
#ifndef DAEMON_BROKER_FILES_BLAME_H
#define DAEMON_BROKER_FILES_BLAME_H

#include <stdint.h>

#include "daemon/broker/children/children.h"
#include "daemon/broker/files/file_shown.h"
#include "daemon/msg/msg_unwind.h"

struct broker;

/* The page of an unwind process that is about to start; *ret_fd is for it. */
must_check int blame_begin(struct unwind *u, int *ret_fd);
void blame_end(struct unwind *u);
/* It has ended, with this status of wait(2). */
void blame_died(struct broker *b, struct unwind *u, int status);
/*
 * A file is about to be handed over: what number goes with it, the same each
 * time, 0 for none. -EACCES: it is left out.
 */
must_check int blame_hand(struct broker *b, const struct unwind *u,
			  const struct msg_file_request *request, const struct file_shown *file,
			  uint32_t *ret_number);

#endif
