/*
 * SIGCHLD: reaps the processes that have ended (wait(2)) and reports each end to the part of the
 * broker that started the process: children/, command.h, output_conversion.h, or else to
 * files/files.h, which starts helpers, and counts the processor time of other ends: those of the
 * children of daemon/common/drain.h.
 */
#ifndef DAEMON_BROKER_SIGCHLD_H
#define DAEMON_BROKER_SIGCHLD_H

struct broker;

/* Reaps all children that have ended. Never waits. */
void sigchld_reap(struct broker *b);

#endif
