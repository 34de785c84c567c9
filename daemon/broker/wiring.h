/* Puts the parts of the broker together: what each may use, and what it calls back. */
#ifndef DAEMON_BROKER_WIRING_H
#define DAEMON_BROKER_WIRING_H

struct broker;

/* Before any other function of a part; b is all zeros, or its static initializer. */
void wiring_connect(struct broker *b);

#endif
