//! A wire between launcher and host that remembers what passes and can be cut.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Forwards one connection.
pub(crate) struct Proxy {
    pub(crate) place: SocketAddr,
    recorded: Arc<Mutex<Vec<u8>>>,
    sockets: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// Listens, and forwards the first connection to `host`.
    pub(crate) fn to(host: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            place: listener.local_addr().unwrap(),
            recorded: Arc::default(),
            sockets: Arc::default(),
        };
        let (recorded, sockets) = (proxy.recorded.clone(), proxy.sockets.clone());
        std::thread::spawn(move || {
            let (launcher, _) = listener.accept().unwrap();
            let host = TcpStream::connect(host).unwrap();
            let again = |socket: &TcpStream| socket.try_clone().unwrap();
            sockets.lock().unwrap().extend([again(&launcher), again(&host)]);
            let (from, to) = (again(&launcher), again(&host));
            std::thread::spawn(move || {
                pass(from, to, |bytes| recorded.lock().unwrap().extend(bytes))
            });
            pass(host, launcher, |_| {});
        });
        proxy
    }

    /// Everything the launcher has sent.
    pub(crate) fn recorded(&self) -> Vec<u8> {
        self.recorded.lock().unwrap().clone()
    }

    /// Cuts the wire on both sides.
    pub(crate) fn cut(&self) {
        for socket in self.sockets.lock().unwrap().iter() {
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, see: impl Fn(&[u8])) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        see(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Write));
}
