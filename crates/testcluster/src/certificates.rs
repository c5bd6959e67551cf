//! Enters: who takes part in a cluster. Leaves: a certificate authority, and for each of them a
//! certificate, or a kubeconfig with one in it.

use std::net::IpAddr;

use anyhow::Context;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use crate::network;

/// A certificate and its key, both PEM.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The authority that everyone in one cluster trusts; it lives and dies with the cluster.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) identity: Identity,
}

impl Authority {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let key = KeyPair::generate().context("generate the authority's key")?;
        let mut parameters = named("unisono-testcluster", None);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let certificate = parameters.self_signed(&key).context("sign the authority")?;
        Ok(Self {
            identity: Identity { certificate: certificate.pem(), key: key.serialize_pem() },
            issuer: Issuer::new(parameters, key),
        })
    }

    /// The API server's own certificate, good for every address and name it is called by.
    pub(crate) fn server(&self) -> anyhow::Result<Identity> {
        let mut parameters = named("kube-apiserver", None);
        for address in [network::ROUTER, network::API_SERVICE, "127.0.0.1"] {
            let address: IpAddr = address.parse().context("parse an address of ours")?;
            parameters.subject_alt_names.push(SanType::IpAddress(address));
        }
        for name in [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
        ] {
            let name = name.try_into().context("use a name of ours")?;
            parameters.subject_alt_names.push(SanType::DnsName(name));
        }
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(parameters)
    }

    /// The certificate by which a client is known as `user` of `group`.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> anyhow::Result<Identity> {
        let mut parameters = named(user, group);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(parameters)
    }

    /// A kubeconfig that needs no other file.
    pub(crate) fn kubeconfig(&self, identity: &Identity) -> String {
        let base64 = |pem: &str| BASE64_STANDARD.encode(pem);
        serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "unisono", "cluster": {
                "server": network::api_url(),
                "certificate-authority-data": base64(&self.identity.certificate),
            }}],
            "users": [{ "name": "user", "user": {
                "client-certificate-data": base64(&identity.certificate),
                "client-key-data": base64(&identity.key),
            }}],
            "contexts": [{ "name": "unisono", "context": { "cluster": "unisono", "user": "user" }}],
            "current-context": "unisono",
        })
        .to_string()
    }

    fn sign(&self, mut parameters: CertificateParams) -> anyhow::Result<Identity> {
        parameters.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        let key = KeyPair::generate().context("generate a key")?;
        let certificate = parameters.signed_by(&key, &self.issuer).context("sign a certificate")?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn named(user: &str, group: Option<&str>) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, user);
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    parameters.distinguished_name = name;
    parameters
}
