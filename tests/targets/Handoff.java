// A thread that puts numbers into a SynchronousQueue, from which another one takes them.
import java.util.concurrent.SynchronousQueue;

public class Handoff {
    public static void main(String[] args) throws InterruptedException {
        SynchronousQueue<Integer> queue = new SynchronousQueue<>();
        Thread sender = new Thread(() -> {
            try {
                for (int i = 0;; i = (i + 1) & 127)
                    queue.put(i);
            } catch (InterruptedException e) {
                return;
            }
        });

        sender.start();
        System.out.println("ready " + ProcessHandle.current().pid());
        while (queue.take() >= 0)
            ;
    }
}
