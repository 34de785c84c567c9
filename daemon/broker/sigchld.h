/*
 * SIGCHLD: reaps the processes that have ended (wait(2)) and reports each end to the part of the
 * broker that started the process: children/, command.h or output_conversion.h. All other ends are
 * reported to files/files.h and discovery/discovery.h, which start helpers. files.h counts the
 * processor time of the helpers, and of the children that daemon/common/drain.h forks.
 */
#ifndef DAEMON_BROKER_SIGCHLD_H
#define DAEMON_BROKER_SIGCHLD_H

struct broker;

/* Reaps all children that have ended. Never waits. */
void sigchld_reap(struct broker *b);

#endif
