// tokio's echo server: a task a connection, on its scheduler for one thread.
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn echo(mut peer: TcpStream) -> std::io::Result<()> {
    peer.set_nodelay(true)?;
    let mut buffer = [0u8; 4096];
    loop {
        let bytes = peer.read(&mut buffer).await?;
        if bytes == 0 {
            return Ok(());
        }
        peer.write_all(&buffer[..bytes]).await?;
    }
}

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?.port());
        loop {
            let (peer, _) = listener.accept().await?;
            tokio::spawn(echo(peer));
        }
    })
}
