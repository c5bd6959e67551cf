//! A wire between the operator and the API server that can be cut.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use unisono_testcluster::Cluster;

/// Passes bytes on, both ways, until it is cut. Whoever connects again gets through again.
pub(crate) struct Wire {
    address: SocketAddr,
    open: Ends,
}

type Ends = Arc<Mutex<Vec<TcpStream>>>;

impl Wire {
    /// Listens in the cluster's network, and connects to an address there.
    pub(crate) fn to(cluster: &Cluster, server: &str) -> anyhow::Result<Self> {
        let open = Ends::default();
        let (server, kept) = (server.to_owned(), Arc::clone(&open));
        let begun = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                cluster.enter()?;
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let address = listener.local_addr()?;
                // It is in the network of the thread that starts it.
                std::thread::spawn(move || accept(&listener, &server, &kept));
                anyhow::Ok(address)
            });
            thread.join()
        });
        let address = begun.map_err(|_| anyhow!("the wire's thread panicked"))??;
        Ok(Self { address, open })
    }

    /// Where to connect to.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every connection; how many there were leaves.
    pub(crate) fn cut(&self) -> usize {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let ends: Vec<TcpStream> = open.drain(..).collect();
        for end in &ends {
            // The other side may have been faster.
            end.shutdown(Shutdown::Both).ok();
        }
        ends.len() / 2
    }
}

fn accept(listener: &TcpListener, server: &str, open: &Ends) {
    for near in listener.incoming().flatten() {
        let Ok(far) = TcpStream::connect(server) else { continue };
        for (from, to) in [(&near, &far), (&far, &near)] {
            let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { continue };
            if let Ok(end) = from.try_clone() {
                open.lock().unwrap_or_else(PoisonError::into_inner).push(end);
            }
            std::thread::spawn(move || {
                std::io::copy(&mut from, &mut to).ok();
                to.shutdown(Shutdown::Write).ok();
            });
        }
    }
}
