/* The files that ship processes read and write: opened by the broker, handed over. */
#ifndef DAEMON_BROKER_DELIVERY_SHIP_FILES_H
#define DAEMON_BROKER_DELIVERY_SHIP_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/broker/children/children.h"

struct broker;

/* Is the file at this index of b->ship_fds there, and for this ship? */
bool ship_files_has(const struct ship *s, size_t file);
/* Opens what the options name; on a fault prints one line. */
must_check int ship_files_open(struct broker *b);
/*
 * At a reload: opens certificates and keys again, and hands them to all ships.
 * Where one cannot be opened a line says so, and all stay as they were.
 */
void ship_files_renew(struct broker *b);

#endif
