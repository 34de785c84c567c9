/*
 * SIGCHLD: reaps the processes that have ended (wait(2)) and reports each end to the part of the
 * broker that started the process: children/, command.h, picture.h, or the helpers that open
 * files (files/files.h).
 */
#ifndef DAEMON_BROKER_SIGCHLD_H
#define DAEMON_BROKER_SIGCHLD_H

struct broker;

/* Reaps all children that have ended. Never waits. */
void sigchld_take(struct broker *b);

#endif
