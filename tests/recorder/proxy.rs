//! A proxy in front of a database that cuts connections when it is told to: around a COMMIT, or for a while altogether.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use loadline::database::Endpoint;

/// What the proxy does.
#[derive(Default)]
pub struct Orders {
    /// Nobody is let through.
    pub is_down: AtomicBool,
    /// How many more COMMITs are cut: forwarded first where the number is even, not forwarded where it is odd.
    pub cuts: AtomicU32,
    /// How long every piece of bytes is held up.
    pub delay_ms: AtomicU64,
    /// COMMITs that were cut.
    pub was_cut: AtomicU32,
}

/// Starts a proxy in front of an endpoint's TCP port; the endpoint that leads through it.
pub fn start(endpoint: &Endpoint) -> (Endpoint, Arc<Orders>) {
    let (host, port) = endpoint.tcp.clone().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let orders = Arc::new(Orders::default());
    let for_thread = Arc::clone(&orders);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let orders = Arc::clone(&for_thread);
            if orders.is_down.load(Ordering::Relaxed) {
                continue;
            }
            let Ok(server) = TcpStream::connect((host.as_str(), port)) else { continue };
            serve(client, server, &orders);
        }
    });
    (Endpoint { unix: None, tcp: Some((address.ip().to_string(), address.port())), ..endpoint.clone() }, orders)
}

fn serve(client: TcpStream, server: TcpStream, orders: &Arc<Orders>) {
    for (from, to, is_request) in
        [(client.try_clone().unwrap(), server.try_clone().unwrap(), true), (server, client, false)]
    {
        let orders = Arc::clone(orders);
        std::thread::spawn(move || {
            pass(from.try_clone().unwrap(), to.try_clone().unwrap(), is_request, &orders);
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_request: bool, orders: &Orders) {
    from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut buffer = vec![0; 64 << 10];
    loop {
        if orders.is_down.load(Ordering::Relaxed) {
            return;
        }
        let length = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut].contains(&error.kind()) => {
                continue;
            }
            Err(_) => return,
        };
        std::thread::sleep(Duration::from_millis(orders.delay_ms.load(Ordering::Relaxed)));
        let bytes = &buffer[..length];
        // PostgreSQL commits at a Sync, which is sent by itself once all counts are known.
        let is_sync = bytes == b"S\0\0\0\x04";
        let is_commit = is_request && (is_sync || bytes.windows(6).any(|window| window == b"COMMIT"));
        if is_commit && orders.cuts.load(Ordering::Relaxed) > 0 {
            let left = orders.cuts.fetch_sub(1, Ordering::Relaxed);
            orders.was_cut.fetch_add(1, Ordering::Relaxed);
            if left.is_multiple_of(2) {
                let _ = to.write_all(bytes);
                // The server commits, and nobody hears of it.
                std::thread::sleep(Duration::from_millis(50));
            }
            return;
        }
        if to.write_all(bytes).is_err() {
            return;
        }
    }
}
