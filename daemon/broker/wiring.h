/*
 * Connects the modules of the broker: sets the callbacks of children/, delivery/, targets/ and
 * control/, and their pointers to the modules that they use. Exception: pointers to files and
 * leak_check are set when main.c makes these two.
 */
#ifndef DAEMON_BROKER_WIRING_H
#define DAEMON_BROKER_WIRING_H

struct broker;

/*
 * Call it once, before any function of these folders. It sets no descriptor: the caller first sets
 * each descriptor in b that is not open to -1 (main.c has the list).
 */
void wiring_connect(struct broker *b);

#endif
