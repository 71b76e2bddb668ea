//! Several relay processes on one database.

use std::io::{BufRead, BufReader, Write, stdin};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use crate::setup::{Bench, Nothing, pool, rate, relay, store};

pub(crate) const CHILD: &str = "child";

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!(
        "\nprocesses: {events} events, one relay each with batches of 1,000; thousand events/s"
    );
    let mut alone = None;
    for processes in [1, 2, 4] {
        bench.fill(events, 1).await;
        let rate = measure(bench, events, processes);
        let alone = *alone.get_or_insert(rate);
        println!("{processes}: {rate:7.1}, ratio {:.2}", rate / alone);
    }
}

/// Blocks, in a program with nothing else to do.
fn measure(bench: &Bench, events: u32, processes: usize) -> f64 {
    let program = std::env::current_exe().expect("this program");
    let mut children: Vec<(Child, BufReader<ChildStdout>)> = (0..processes)
        .map(|_| {
            let mut child = Command::new(&program)
                .args([CHILD, &bench.url])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("started");
            let mut said = BufReader::new(child.stdout.take().expect("piped"));
            line(&mut said);
            (child, said)
        })
        .collect();
    let begun = Instant::now();
    for (child, _) in &mut children {
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(b"go\n").expect("told");
    }
    let published = children.iter_mut().map(|(_, said)| line(said));
    let published: u32 = published.filter_map(|said| said.parse::<u32>().ok()).sum();
    let took = begun.elapsed();
    for (mut child, _) in children {
        child.wait().expect("ended");
    }
    assert_eq!(published, events);
    rate(events, took)
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("said");
    line.trim_end().to_owned()
}

/// Delivers until nothing is due, and says how many it was.
pub(crate) async fn child(url: &str) {
    let pool = pool(url).await;
    let (nothing, _done) = Nothing::until(u32::MAX);
    let relay = relay(store(&pool), nothing, 1_000).build().expect("valid");
    println!("ready");
    line(&mut stdin().lock());
    let report = relay.run_until_idle().await.expect("delivered");
    println!("{}", report.published);
}
