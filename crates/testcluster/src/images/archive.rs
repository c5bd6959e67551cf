//! Enters: a root folder and what runs in it. Leaves: an image as `docker save` writes one: a layer,
//! a configuration and a manifest in a tar.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use serde_json::json;
use sha2::{Digest, Sha256};
use tar::{Builder, Header};

use super::layer;
use crate::cache::{hexadecimal, sha256};

/// What a container of the image starts with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Configuration {
    /// `uid:gid`; root when empty.
    pub(crate) user: &'static str,
    pub(crate) environment: &'static [&'static str],
    pub(crate) command: &'static [&'static str],
}

/// Writes the image of a root folder to `output`.
pub(crate) fn write(
    reference: &str,
    root: &Path,
    configuration: Configuration,
    output: &Path,
) -> anyhow::Result<()> {
    let unpacked = output.with_extension("layer");
    let digest = write_layer(root, &unpacked)?;
    let configuration = json!({
        "architecture": "amd64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "User": configuration.user,
            "Env": configuration.environment,
            "Cmd": configuration.command,
            "WorkingDir": "/",
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{digest}")] },
        "history": [{ "created": "1970-01-01T00:00:00Z" }],
    })
    .to_string();
    let configuration_name = format!("{}.json", sha256(configuration.as_bytes()));
    let layer_name = format!("{digest}.tar");
    let manifest = json!([{
        "Config": configuration_name,
        "RepoTags": [reference],
        "Layers": [layer_name],
    }])
    .to_string();

    let mut tar = Builder::new(BufWriter::new(File::create(output).context("create an image")?));
    let mut layer = File::open(&unpacked).context("open a layer")?;
    let size = layer.metadata().context("look at a layer")?.len();
    append(&mut tar, &configuration_name, configuration.len() as u64, configuration.as_bytes())?;
    append(&mut tar, &layer_name, size, &mut layer)?;
    append(&mut tar, "manifest.json", manifest.len() as u64, manifest.as_bytes())?;
    let mut file = tar.into_inner().context("finish an image")?;
    file.flush().context("finish an image")?;
    std::fs::remove_file(&unpacked).context("remove a layer that is packed")
}

/// Packs the layer and returns its digest.
fn write_layer(root: &Path, place: &Path) -> anyhow::Result<String> {
    let file = BufWriter::new(File::create(place).context("create a layer")?);
    let mut hashing = Hashing { inner: file, hash: Sha256::new() };
    layer::pack(root, &mut hashing)?;
    hashing.flush().context("finish a layer")?;
    Ok(hexadecimal(&hashing.hash.finalize()))
}

fn append(
    tar: &mut Builder<impl Write>,
    name: &str,
    size: u64,
    content: impl io::Read,
) -> anyhow::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(size);
    tar.append_data(&mut header, name, content).with_context(|| format!("add {name} to an image"))
}

/// Hashes what passes through.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
