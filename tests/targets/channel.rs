// A thread that sends numbers to another one by a channel without room: each waits for the other.
use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::thread;

fn main() {
    let (sender, receiver) = sync_channel::<u64>(0);
    thread::spawn(move || {
        for n in 0.. {
            sender.send(n).unwrap();
        }
    });
    println!("ready {}", std::process::id());
    for n in receiver {
        black_box(n);
    }
}
