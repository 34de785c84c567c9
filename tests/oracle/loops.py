"""Programs for differ.py that are blocked most of the time: event loops, as servers
have them, with and without frame pointers; and programs that switch stacks.

capture samples a blocked thread without a stop: only the stack pointer and the pc
are known. tests/oracle/differ.c compares the stack from such a sample with the
stack at a stop a moment later.
"""

import pathlib
import subprocess
import sys

# Two threads with an event loop each. The loops call callbacks at several depths,
# some of which block, with frames of variable size (which need a frame pointer) and
# of fixed size.
COMMON = r'''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define NOINLINE __attribute__((noinline))
static volatile unsigned long sum;
NOINLINE static void pause_us(int us)
{
	struct timespec t = {.tv_nsec = us * 1000};
	nanosleep(&t, NULL);
	sum++;
}
NOINLINE static void fixed(int n)
{
	char text[64];
	if (n > 0)
		fixed(n - 1);
	else
		pause_us(300);
	sum += (unsigned long)snprintf(text, sizeof(text), "%d", n);
}
NOINLINE static void varied(int n)
{
	volatile char room[n * 24 + 1];
	room[n] = 1;
	if (n > 0)
		varied(n - 1);
	else
		fixed(2);
	sum += room[n];
}
static int compare(const void *a, const void *b)
{
	if (sum++ % 16 == 0)
		pause_us(200);
	return memcmp(a, b, 1);
}
NOINLINE static void work(int n)
{
	char text[] = "looping";
	switch (n % 4) {
	case 0:
		fixed(n % 7);
		break;
	case 1:
		varied(n % 5);
		break;
	case 2:
		qsort(text, sizeof(text), 1, compare);
		break;
	}
	sum++;
}
static void *loop(void *arg);
NOINLINE static void start(int n)
{
	volatile char room[n + 1];
	room[n] = 1;
	if (n > 2)
		start(n - 1);
	else
		loop(NULL);
	sum += room[n];
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, loop, NULL);
	puts("ready");
	fflush(stdout);
	start(6);
}
'''

EV = '#include <ev.h>\n' + COMMON + r'''
static void on_timer(struct ev_loop *l, ev_timer *w, int events)
{
	static int n;
	(void)l, (void)w, (void)events;
	work(n++);
}
static void *loop(void *arg)
{
	struct ev_loop *l = ev_loop_new(0);
	ev_timer t;
	ev_timer_init(&t, on_timer, 0.001, 0.001);
	ev_timer_start(l, &t);
	ev_run(l, 0);
	return arg;
}
'''

# With the worker threads of libuv, which wait for work.
UV = '#include <uv.h>\n' + COMMON + r'''
static void on_work(uv_work_t *w) { (void)w; work((int)sum); }
static void on_timer(uv_timer_t *t)
{
	static int n;
	static uv_work_t works[64];
	work(n++);
	if (n % 8 == 0 && t->data)
		uv_queue_work(t->loop, &works[n / 8 % 64], on_work, NULL);
}
static void *loop(void *arg)
{
	static char main_loop;
	uv_loop_t *l = malloc(sizeof(*l));
	uv_timer_t t;
	uv_loop_init(l);
	uv_timer_init(l, &t);
	t.data = __sync_lock_test_and_set(&main_loop, 1) ? NULL : l;
	uv_timer_start(&t, on_timer, 1, 1);
	uv_run(l, UV_RUN_DEFAULT);
	return arg;
}
'''

ASYNC = '''
import asyncio
async def f(n):
    await asyncio.sleep(0.001)
    if n: await f(n - 1)
async def main():
    print("ready", flush=True)
    while True: await asyncio.gather(*(f(i) for i in range(5)))
asyncio.run(main())
'''

NODE = '''
const fs = require('fs'), http = require('http');
const server = http.createServer((q, s) => s.end('x'.repeat(100)));
server.listen(0, '127.0.0.1', () => { console.log('ready');
  const get = () => http.get({port: server.address().port}, (r) => {
    r.resume(); r.on('end', () => setTimeout(get, 2)); });
  get(); });
setInterval(() => fs.readFile('/proc/self/stat', () => {}), 3);
'''

GO = '''package main
import ("bufio"; "fmt"; "net"; "time")
func serve(c net.Conn) { r := bufio.NewReader(c)
  for { l, e := r.ReadString('\\n'); if e != nil { return }
    fmt.Fprint(c, l) } }
func main() { l, _ := net.Listen("tcp", "127.0.0.1:0")
  go func() { for { c, _ := l.Accept(); go serve(c) } }()
  c, _ := net.Dial("tcp", l.Addr().String()); r := bufio.NewReader(c)
  fmt.Println("ready")
  for { fmt.Fprintln(c, "a line"); r.ReadString('\\n')
    time.Sleep(time.Millisecond) } }
'''

JAVA = '''import java.nio.*; import java.nio.channels.*; import java.net.*;
public class Loop { public static void main(String[] a) throws Exception {
Selector s = Selector.open(); ServerSocketChannel l = ServerSocketChannel.open();
l.bind(new InetSocketAddress("127.0.0.1", 0)); l.configureBlocking(false);
l.register(s, SelectionKey.OP_ACCEPT);
int port = ((InetSocketAddress) l.getLocalAddress()).getPort();
Thread t = new Thread(() -> { try { for (;;) { new Socket("127.0.0.1", port)
.close(); Thread.sleep(2); } } catch (Exception e) { } }); t.start();
System.out.println("ready"); for (;;) { s.select(5);
for (SelectionKey k : s.selectedKeys()) { SocketChannel c = l.accept();
if (c != null) c.close(); } s.selectedKeys().clear(); } } }
'''


# Four coroutines of Boost.Context, which other libraries use, too. The main stack and
# the coroutines switch to each other at several depths.
BOOST_LIBRARY = '/usr/lib/x86_64-linux-gnu/libboost_context.so.1.74.0'
BOOST = r'''
#include <stdio.h>
#include <stdlib.h>
struct transfer { void *context, *data; };
struct transfer jump_fcontext(void *to, void *data);
void *make_fcontext(void *top, size_t size, void (*run)(struct transfer));
static struct transfer turns[4], backs[4];
static volatile long sum;
static int current;
__attribute__((noinline)) static long deeper(int n, int id)
{
	long s = 0;
	for (int i = 0; i < n * 10; i++)
		s += i * sum;
	if (n > 0)
		s += deeper(n - 1, id);
	else if (id >= 0)
		backs[id] = jump_fcontext(backs[id].context, NULL);
	return s + 1;
}
static void run(struct transfer t)
{
	int id = current;
	backs[id] = t;
	for (;;)
		sum += deeper(id * 3 + 2, id);
}
int main(void)
{
	for (int i = 0; i < 4; i++)
		turns[i].context = make_fcontext((char *)malloc(65536) + 65536,
						 65536, run);
	puts("ready");
	fflush(stdout);
	for (int i = 0;; i++) {
		current = i % 4;
		turns[current] = jump_fcontext(turns[current].context, NULL);
		sum += deeper(3, -1);
	}
}
'''


def ready(r, *argv):
    """Starts a program, and waits until it prints a line: it is ready."""
    pid = r.start(*argv, stdout=subprocess.PIPE)
    r.processes[-1].stdout.readline()
    return pid


def compiled(library, source, flag):
    def start(r):
        r.compile('gcc', '-O2', '-w', flag, '-o', 'loop', r.write('loop.c',
                                                                  source),
                  '-pthread', f'-l{library}')
        return ready(r, r.dir / 'loop')
    return start


def boost(flag):
    def start(r):
        r.compile('gcc', '-O2', '-w', flag, '-o', 'turns',
                  r.write('turns.c', BOOST), BOOST_LIBRARY)
        return ready(r, r.dir / 'turns')
    return start


def go(r):
    r.compile('go', 'build', '-o', 'loop', r.write('loop.go', GO))
    return ready(r, r.dir / 'loop')


def java(r):
    r.write('Loop.java', JAVA)
    r.compile('javac', 'Loop.java')
    return ready(r, 'java', '-Xmx64m', '-cp', r.dir, 'Loop')


def has(path):
    """Returns a command that is installed if path exists (relative to
    /usr/include), else one that is not: for LOOPS and COROUTINES."""
    path = pathlib.Path('/usr/include', path)
    return sys.executable if path.exists() else str(path)


COROUTINES = {
    'boost': (has(BOOST_LIBRARY), boost('-fomit-frame-pointer')),
    'boost_fp': (has(BOOST_LIBRARY), boost('-fno-omit-frame-pointer')),
}

# As differ.REAL: {name: (command that has to be installed, function that starts it)}.
LOOPS = {
    'loop_ev': (has('ev.h'), compiled('ev', EV, '-fomit-frame-pointer')),
    'loop_ev_fp': (has('ev.h'), compiled('ev', EV, '-fno-omit-frame-pointer')),
    'loop_uv': (has('uv.h'), compiled('uv', UV, '-fomit-frame-pointer')),
    'loop_uv_fp': (has('uv.h'), compiled('uv', UV, '-fno-omit-frame-pointer')),
    'loop_python': ('/usr/bin/python3',
                    lambda r: ready(r, '/usr/bin/python3', '-c', ASYNC)),
    'loop_node': ('node', lambda r: ready(r, 'node', '-e', NODE)),
    'loop_go': ('go', go),
    'loop_java': ('javac', java),
}
