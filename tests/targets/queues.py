"""Two threads that hand numbers to each other by two queue.Queue."""
import os
import queue
import threading

there, back = queue.Queue(), queue.Queue()


def answer():
    while True:
        back.put(there.get() + 1)


threading.Thread(target=answer, daemon=True).start()
print('ready', os.getpid(), flush=True)
n = 0
while True:
    there.put(n)
    n = back.get()
