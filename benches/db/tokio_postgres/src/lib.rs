// What both programs need: connections to the server that with_postgres.sh has started.
use tokio_postgres::{Client, NoTls};

/// Its driver runs as a task of its own, which sends what has been asked meanwhile at once.
pub async fn connect() -> Client {
    let target = std::env::var("BENCH_POSTGRES").expect("BENCH_POSTGRES");
    let (client, driver) = tokio_postgres::connect(&target, NoTls).await.expect("no connection");
    tokio::spawn(async move {
        driver.await.expect("the connection is lost");
    });
    client
}
