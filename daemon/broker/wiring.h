/*
 * Connects the modules of the broker: sets the pointers of each module to those that it uses,
 * and its callbacks.
 */
#ifndef DAEMON_BROKER_WIRING_H
#define DAEMON_BROKER_WIRING_H

struct broker;

/*
 * Call it before any other function of a module of b. It sets no descriptor. The caller must have
 * set each descriptor in b to -1 before, unless it is open (main.c has the list).
 */
void wiring_connect(struct broker *b);

#endif
