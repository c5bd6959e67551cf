//! A peer that speaks TLS but not our manners: any key or none, any bytes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, ResolvesClientCert};
use rustls::crypto::ring::{default_provider, sign::any_eddsa_type};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};

use super::secret;

/// A TLS connection of an attacker.
pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Connects with the key of this seed, or with no key at all. Whether it is let in shows on the first read.
pub(crate) fn connect(place: SocketAddr, seed: Option<u8>) -> Stream {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyHost));
    let config = match seed {
        Some(seed) => builder.with_client_cert_resolver(proof_of_key(seed)),
        None => builder.with_client_cert_resolver(Arc::new(NoKey)),
    };
    let socket = TcpStream::connect(place).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let name = ServerName::IpAddress(place.ip().into());
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
}

/// A frame as the protocol writes it, with any kind and any length.
pub(crate) fn frame(kind: u8, length: u32, payload: &[u8]) -> Vec<u8> {
    [&[kind][..], &length.to_be_bytes(), payload].concat()
}

/// The two frames that ask for a command.
pub(crate) fn launch(command: &str) -> Vec<u8> {
    let length = u32::try_from(command.len()).unwrap();
    [frame(1, length, command.as_bytes()), frame(2, 1, &[0])].concat()
}

/// Sends bytes and reads until the host hangs up. Gives what it said, if it said anything.
pub(crate) fn converse(mut stream: Stream, bytes: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    if stream.write_all(bytes).and_then(|()| stream.flush()).is_ok() {
        drop(stream.read_to_end(&mut answer));
    }
    answer
}

fn proof_of_key(seed: u8) -> Arc<dyn ResolvesClientCert> {
    const PKCS8: [u8; 16] = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    let private = [&PKCS8[..], &[seed; 32]].concat();
    let public = [&SPKI[..], secret(seed).public().as_bytes()].concat();
    let signing = any_eddsa_type(&PrivatePkcs8KeyDer::from(private)).unwrap();
    let key = CertifiedKey::new(vec![CertificateDer::from(public)], signing);
    Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::new(key)))
}

#[derive(Debug)]
struct NoKey;

impl ResolvesClientCert for NoKey {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn only_raw_public_keys(&self) -> bool {
        true
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// An attacker does not care whom it talks to.
#[derive(Debug)]
struct AnyHost;

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
