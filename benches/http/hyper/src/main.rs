// hyper's server, on tokio's scheduler for one thread: a task a connection.
use std::convert::Infallible;

use hyper::header::{HeaderValue, CONTENT_TYPE, SERVER};
use hyper::server::conn::Http;
use hyper::service::service_fn;
use hyper::{Body, Request, Response, StatusCode};
use tokio::net::TcpListener;

async fn answer(asked: Request<Body>) -> Result<Response<Body>, Infallible> {
    if asked.uri().path() != "/plaintext" {
        let mut missing = Response::new(Body::empty());
        *missing.status_mut() = StatusCode::NOT_FOUND;
        return Ok(missing);
    }
    let mut found = Response::new(Body::from("Hello, World!"));
    let fields = found.headers_mut();
    fields.insert(SERVER, HeaderValue::from_static("hyper"));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(found)
}

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?.port());
        let mut http = Http::new();
        http.http1_only(true).pipeline_flush(true);
        loop {
            let (peer, _) = listener.accept().await?;
            peer.set_nodelay(true)?;
            let serving = http.serve_connection(peer, service_fn(answer));
            tokio::spawn(async move {
                let _ = serving.await;
            });
        }
    })
}
