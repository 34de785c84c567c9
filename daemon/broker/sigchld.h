/*
 * SIGCHLD: takes note of the processes that have ended, and passes each end to the part of
 * the broker that started the process: children/, the command, the converter of
 * picture.h, or a helper that opens files.
 */
#ifndef DAEMON_BROKER_SIGCHLD_H
#define DAEMON_BROKER_SIGCHLD_H

struct broker;

void sigchld_take(struct broker *b);

#endif
