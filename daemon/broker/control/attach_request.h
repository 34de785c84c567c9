/*
 * Handles the request attach (sentry-profctl attach): a user adds a process by its pid, independent
 * of the configuration. Also finds the instance (targets/instance.h) of a process that is to be
 * recorded (recordings.h). detach.h is the opposite.
 *
 * The setting user_attach in [sentry] says what users who are no operators (rights.h) may do with
 * their own processes. A recording goes to the user who requested it. Profiles of an attached
 * process go to the DSN of the configuration, with the release and environment that the process's
 * user chose:
 *
 *     user_attach              no    record    send
 *     record the process       -     yes       yes
 *     attach the process       -     -         yes
 *
 * If sentry-profd runs with --children, the setting counts as `no`: each child of a process that a
 * user added would be profiled and sent, too. The administrator has already decided about processes
 * that a section matches, that the command line names, that --children added, or that an operator
 * has attached. Their users may attach and record these processes whatever the setting says.
 *
 * The request changes the instance only: targets/instances.h then starts a run, and capture
 * attaches by ptrace.
 */
#ifndef DAEMON_BROKER_CONTROL_ATTACH_REQUEST_H
#define DAEMON_BROKER_CONTROL_ATTACH_REQUEST_H

#include <stdint.h>

#include "daemon/broker/control/control.h"

#include "daemon/process/peer.h"

struct targets;

/*
 * The maximum number of processes that are attached or recorded at the request of one user
 * (peer->user), and the maximum for all users together. Operators have neither limit. Both limits
 * count the processes that users have added, and the processes of a section that are profiled only
 * because of a user's request. ATTACH_REQUEST_USERS_MAX is a quarter of HEARTBEAT_SLOTS, the
 * maximum number of targets: the other three quarters are for sections and operators.
 */
#define ATTACH_REQUEST_USER_MAX	 8
#define ATTACH_REQUEST_USERS_MAX 64

/*
 * Handles attach: the daemon profiles the process from now on, whatever the process's section says
 * of lifecycle and sampling. Makes an instance if the process has none. If the process was released
 * (sentry-profctl detach --for), the release ends. pid, here and below: in the broker's pid
 * namespace.
 *
 * *ret, here and below: the answer, as in control_handler.request(). Its result is
 * - PROTOCOL_OK: the daemon profiles the process from now on;
 * - PROTOCOL_RUNS_ALREADY: the daemon profiles the process already;
 * - a refusal: PROTOCOL_DENIED (the peer lacks the right, or user_attach forbids the request),
 *   PROTOCOL_NO_PROCESS, PROTOCOL_BUSY (a limit is reached) or PROTOCOL_FAILED (the process cannot
 *   be profiled).
 */
void attach_request_handle(struct targets *ts, const struct peer *peer, int32_t pid,
			   struct control_answer *ret);

/*
 * Returns the instance for a recording of the process, and leaves the result in *ret as it was; the
 * caller adds the recording. If the process has no instance, makes one that exists until its last
 * recording ends. If the request is refused, returns NULL. Then the result in *ret is one of those
 * of a refusal above, or PROTOCOL_LEFT_OUT: the process was detached or released, or its instance
 * is INSTANCE_LEFT_OUT.
 */
struct instance *attach_request_for_recording(struct targets *ts, const struct peer *peer,
					      int32_t pid, struct control_answer *ret);

/*
 * To be called after a reload: removes the instances that users have added, if user_attach no
 * longer permits them.
 */
void attach_request_config_changed(struct targets *ts);

#endif
