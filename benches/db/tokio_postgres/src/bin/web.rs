// The rows db/postgres_updates and db/fortunes: hyper's server on tokio's scheduler for one thread,
// and tokio-postgres, which sends what is asked at the same time in one pipeline.
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

use futures_util::future::try_join_all;
use hyper::header::{HeaderValue, CONTENT_TYPE, SERVER};
use hyper::server::conn::Http;
use hyper::service::service_fn;
use hyper::{Body, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio_postgres::{Client, Error, Statement};
use tokio_postgres_peers::connect;

const CONNECTIONS: usize = 4;
const WORLDS: u32 = 10_000;

struct Database {
    client: Client,
    find: Statement,
    update: Statement,
    fortunes: Statement,
}

async fn open() -> Result<Database, Error> {
    let client = connect().await;
    let find = client.prepare("SELECT id, number FROM world WHERE id = $1").await?;
    let update = client
        .prepare(
            "UPDATE world SET number = changed.number FROM unnest($1::int[], $2::int[]) \
             AS changed (id, number) WHERE world.id = changed.id",
        )
        .await?;
    let fortunes = client.prepare("SELECT id, message FROM fortune").await?;
    Ok(Database { client, find, update, fortunes })
}

fn random_number() -> i32 {
    static STATE: AtomicU32 = AtomicU32::new(1);
    let next = (u64::from(STATE.load(Ordering::Relaxed)) * 48_271 % 2_147_483_647) as u32;
    STATE.store(next, Ordering::Relaxed);
    1 + (next % WORLDS) as i32
}

/// In ascending order, so that no two requests wait for each other's rows; each once.
fn random_ids(count: usize) -> Vec<i32> {
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        ids.extend((ids.len()..count).map(|_| random_number()));
        ids.sort_unstable();
        ids.dedup();
    }
    ids
}

fn queries_in(asked: &Request<Body>) -> usize {
    let text = asked.uri().query().and_then(|all| all.strip_prefix("queries="));
    text.and_then(|one| one.parse().ok()).unwrap_or(1).clamp(1, 500)
}

async fn update(of: &Database, count: usize) -> Result<String, Error> {
    let finds = random_ids(count).into_iter().map(|id| async move {
        let row = of.client.query_one(&of.find, &[&id]).await?;
        Ok::<_, Error>((row.get::<_, i32>(0), row.get::<_, i32>(1)))
    });
    let found = try_join_all(finds).await?;
    let ids: Vec<i32> = found.iter().map(|one| one.0).collect();
    let numbers: Vec<i32> = ids.iter().map(|_| random_number()).collect();
    of.client.execute(&of.update, &[&ids, &numbers]).await?;
    let mut text = String::with_capacity(count * 40 + 2);
    for (id, number) in ids.iter().zip(&numbers) {
        let begin = if text.is_empty() { '[' } else { ',' };
        write!(text, "{begin}{{\"id\":{id},\"randomNumber\":{number}}}").unwrap();
    }
    text.push(']');
    Ok(text)
}

fn add_escaped(to: &mut String, text: &str) {
    let mut begin = 0;
    for (at, one) in text.bytes().enumerate() {
        let escaped = match one {
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'&' => "&amp;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            _ => continue,
        };
        to.push_str(&text[begin..at]);
        to.push_str(escaped);
        begin = at + 1;
    }
    to.push_str(&text[begin..]);
}

async fn fortunes(of: &Database) -> Result<String, Error> {
    let rows = of.client.query(&of.fortunes, &[]).await?;
    let mut all: Vec<(i32, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    all.push((0, "Additional fortune added at request time."));
    all.sort_unstable_by_key(|one| one.1);
    let mut page = String::with_capacity(2048);
    page.push_str(
        "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th>\
         <th>message</th></tr>",
    );
    for (id, message) in all {
        write!(page, "<tr><td>{id}</td><td>").unwrap();
        add_escaped(&mut page, message);
        page.push_str("</td></tr>");
    }
    page.push_str("</table></body></html>");
    Ok(page)
}

async fn answer(asked: Request<Body>, of: &Database) -> Result<Response<Body>, Infallible> {
    let (made, kind) = match asked.uri().path() {
        "/updates" => (update(of, queries_in(&asked)).await, "application/json"),
        "/fortunes" => (fortunes(of).await, "text/html; charset=utf-8"),
        _ => {
            let mut missing = Response::new(Body::empty());
            *missing.status_mut() = StatusCode::NOT_FOUND;
            return Ok(missing);
        }
    };
    let mut found = match made {
        Ok(text) => Response::new(Body::from(text)),
        Err(failure) => {
            let mut failed = Response::new(Body::from(failure.to_string()));
            *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            failed
        }
    };
    let fields = found.headers_mut();
    fields.insert(SERVER, HeaderValue::from_static("hyper"));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(found)
}

async fn serve() -> std::io::Result<()> {
    let mut opened = Vec::new();
    for _ in 0..CONNECTIONS {
        opened.push(open().await.expect("no statements"));
    }
    let databases = Arc::new(opened);
    let next = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    let mut http = Http::new();
    http.http1_only(true);
    loop {
        let (peer, _) = listener.accept().await?;
        peer.set_nodelay(true)?;
        let (databases, next) = (databases.clone(), next.clone());
        let service = service_fn(move |asked| {
            let databases = databases.clone();
            let at = next.fetch_add(1, Ordering::Relaxed) % CONNECTIONS;
            async move { answer(asked, &databases[at]).await }
        });
        let serving = http.serve_connection(peer, service);
        tokio::spawn(async move {
            let _ = serving.await;
        });
    }
}

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve())
}
