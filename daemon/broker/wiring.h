/*
 * Connects the parts of the broker: sets the pointers of each part to the parts that it uses,
 * and its callbacks.
 */
#ifndef DAEMON_BROKER_WIRING_H
#define DAEMON_BROKER_WIRING_H

struct broker;

/* Call it before any other function of a part. b is all zeros or has its static initializer. */
void wiring_connect(struct broker *b);

#endif
