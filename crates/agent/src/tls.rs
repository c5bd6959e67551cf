//! TLS 1.3 with raw public keys (RFC 7250): a key of ours and the keys we trust go in, rustls configurations leave.
//!
//! One version, one suite, one key exchange, one signature scheme: there is nothing to negotiate and nothing to downgrade.
//! There are no certificates: a peer's key is compared with the pinned ones, then its signature is checked.

use std::sync::Arc;

use ring::rand::SecureRandom as _;
use ring::signature::{self, Ed25519KeyPair, UnparsedPublicKey};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::ring::{cipher_suite, kx_group};
use rustls::crypto::{
    CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, WebPkiSupportedAlgorithms,
};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureAlgorithm, SignatureScheme, version,
};

use crate::keys::{KeyError, Launchers, PublicKey, SecretKey};

/// What a host speaks: it proves its own key and lets in only the launchers.
pub(crate) fn host_config(
    key: &SecretKey,
    launchers: &Launchers,
) -> Result<Arc<ServerConfig>, TlsError> {
    let accepted = Pinned::new(launchers.iter().copied());
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&version::TLS13])?
        .with_client_cert_verifier(Arc::new(accepted))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified(key)?)));
    // A session that can be resumed is state to keep and a second way in.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Arc::new(config))
}

/// What a launcher speaks to one host: it proves its own key and accepts only that host's.
pub(crate) fn launcher_config(
    key: &SecretKey,
    host: PublicKey,
) -> Result<Arc<ClientConfig>, TlsError> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned::new([host])))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(certified(
            key,
        )?)));
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// Why a configuration could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("rustls refuses its configuration")]
    Rustls(#[from] Error),
}

/// Only what is used is named, so that the linker leaves the rest of the cryptography out.
fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![kx_group::X25519],
        signature_verification_algorithms: WebPkiSupportedAlgorithms { all: &[], mapping: &[] },
        secure_random: &SystemRandom,
        key_provider: &NoKeyFiles,
    }
}

fn certified(key: &SecretKey) -> Result<Arc<CertifiedKey>, KeyError> {
    let spki = CertificateDer::from(key.public().to_spki());
    let signing = Arc::new(Ed25519(Arc::new(key.pair()?)));
    Ok(Arc::new(CertifiedKey::new(vec![spki], signing)))
}

#[derive(Debug)]
struct SystemRandom;

impl SecureRandom for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        ring::rand::SystemRandom::new().fill(buffer).map_err(|_| GetRandomFailed)
    }
}

/// Keys reach rustls through [`certified`] alone.
#[derive(Debug)]
struct NoKeyFiles;

impl KeyProvider for NoKeyFiles {
    fn load_private_key(&self, _key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Err(Error::General("keys are not read by rustls".to_owned()))
    }
}

/// A key pair that signs handshakes.
#[derive(Clone)]
struct Ed25519(Arc<Ed25519KeyPair>);

impl std::fmt::Debug for Ed25519 {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Ed25519")
    }
}

impl SigningKey for Ed25519 {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered
            .contains(&SignatureScheme::ED25519)
            .then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        None
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

impl Signer for Ed25519 {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.0.sign(message).as_ref().to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ED25519
    }
}

/// Accepts the pinned keys and no other.
#[derive(Debug)]
struct Pinned(Vec<(Vec<u8>, PublicKey)>);

impl Pinned {
    fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        Self(keys.into_iter().map(|key| (key.to_spki(), key)).collect())
    }

    fn find(&self, spki: &[u8]) -> Result<PublicKey, Error> {
        self.0
            .iter()
            .find(|(pinned, _)| pinned == spki)
            .map(|(_, key)| *key)
            .ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn verify(
        &self,
        message: &[u8],
        spki: &[u8],
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let bad = || Error::InvalidCertificate(CertificateError::BadSignature);
        let key = self.find(spki)?;
        if signed.scheme != SignatureScheme::ED25519 {
            return Err(bad());
        }
        UnparsedPublicKey::new(&signature::ED25519, key.as_bytes())
            .verify(message, signed.signature())
            .map(|()| HandshakeSignatureValid::assertion())
            .map_err(|_| bad())
    }
}

/// What rustls' two traits of verifiers have in common, word for word: how a signature is checked.
macro_rules! signatures_by_pinned_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _spki: &CertificateDer<'_>,
            _signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.2 is not spoken".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            spki: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.verify(message, spki, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.find(end_entity).map(|_| ServerCertVerified::assertion())
    }

    signatures_by_pinned_keys!();
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.find(end_entity).map(|_| ClientCertVerified::assertion())
    }

    signatures_by_pinned_keys!();
}
