// db/postgres_query: 64 tasks, each of which waits for its answer, on one connection, on
// tokio's scheduler for several threads. The one for one thread is slower here.
use std::sync::Arc;
use std::time::Instant;

use tokio_postgres::{Client, Statement};
use tokio_postgres_peers::connect;

const WORLDS: u64 = 10_000;
const IN_FLIGHT: u64 = 64;

async fn find_some(client: Arc<Client>, find: Statement, first: u64, count: u64) -> u64 {
    for query in first..first + count {
        let id = 1 + (query * 7919 % WORLDS) as i32;
        let row = client.query_one(&find, &[&id]).await.expect("no row");
        assert_eq!(row.get::<_, i32>(0), id);
    }
    count
}

async fn run(size: u64) {
    let client = Arc::new(connect().await);
    let tables = "DROP TABLE IF EXISTS world;\
                  CREATE TABLE world (id int PRIMARY KEY, number int NOT NULL);\
                  INSERT INTO world SELECT n, n FROM generate_series(1, 10000) AS n; ANALYZE world";
    client.batch_execute(tables).await.expect("no tables");
    let find = client.prepare("SELECT number FROM world WHERE id = $1").await.expect("no statement");
    let each = size / IN_FLIGHT;
    let began = Instant::now();
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|i| tokio::spawn(find_some(client.clone(), find.clone(), i * each, each)))
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.expect("a task has failed");
    }
    println!("value={:.2} check={}", began.elapsed().as_nanos() as f64 / done as f64, done);
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.len() < 3 || words[1] != "postgres_query" {
        eprintln!("usage: queries postgres_query WORKERS [SIZE]");
        std::process::exit(2);
    }
    let size = words.get(3).map_or(192_000, |text| text.parse().expect("SIZE"));
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(words[2].parse().expect("WORKERS"));
    builder.enable_all().build().expect("no runtime").block_on(run(size));
}
