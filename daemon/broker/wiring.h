/*
 * Connects the modules of the broker: sets the pointers of each module to those that it uses,
 * and its callbacks.
 */
#ifndef DAEMON_BROKER_WIRING_H
#define DAEMON_BROKER_WIRING_H

struct broker;

/*
 * Call it before any other function of a module of b. The function sets no descriptor: the caller
 * first sets each descriptor in b that is not open to -1 (main.c has the list).
 */
void wiring_connect(struct broker *b);

#endif
