//! An image with one file: an MPI program that is linked statically, against Debian's MPICH. No
//! shell, no libraries, nothing that an agent could lean on.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use unisono_testbed::program::Program;

use super::archive::Configuration;
use super::{Recipe, programs};
use crate::cache::Key;

/// The packages with the static libraries. They are unpacked, not installed: they would change
/// which MPI the machine's `mpicc` stands for.
const PACKAGES: &[&str] = &["libmpich-dev", "libhwloc-dev", "libucx-dev", "libnuma-dev"];

/// The libraries in the order in which each needs the next. UCX' transports are found by
/// constructors, so all of UCX must be linked.
const LIBRARIES: &str = "-lmpich -lhwloc -Wl,--whole-archive -lucp -luct -lucs -lucm \
                         -Wl,--no-whole-archive -lnuma -lpthread -lm -lrt -ldl";

/// hwloc asks udev for names of disks, and Debian has no static udev: there are none.
const NO_UDEV: &str = "
void *udev_new(void) { return 0; }
void *udev_unref(void *udev) { (void)udev; return 0; }
void *udev_device_new_from_subsystem_sysname(void *udev, const char *subsystem, const char *name) {
    (void)udev; (void)subsystem; (void)name;
    return 0;
}
const char *udev_device_get_property_value(void *device, const char *key) {
    (void)device; (void)key;
    return 0;
}
void *udev_device_unref(void *device) { (void)device; return 0; }
";

/// Says rank, size and host.
pub(super) const STATIC: Recipe = Recipe {
    name: "static",
    configuration: Configuration { user: "65534:65534", environment: &[], command: &["/hello"] },
    key: || {
        let (_, source) = Program::Hello.source();
        Ok(Key::new().with(PACKAGES.join(",")).with(LIBRARIES).with(NO_UDEV).with(source))
    },
    fill,
};

fn fill(root: &Path) -> anyhow::Result<()> {
    let work = tempfile::tempdir().context("create a folder for packages")?;
    download(work.path())?;
    let system = work.path().join("root/usr");
    let machine = "x86_64-linux-gnu";
    let (_, source) = Program::Hello.source();
    let mut compiler = Command::new("cc");
    compiler.arg("-static").arg("-I").arg(system.join("include").join(machine).join("mpich"));
    let mut libraries = vec![format!("-L{}", system.join("lib").join(machine).display())];
    libraries.extend(LIBRARIES.split_whitespace().map(str::to_owned));
    let both = format!("{source}\n{NO_UDEV}");
    programs::compile(&mut compiler, &both, &root.join("hello"), &libraries)
}

/// Fetches the packages into a folder and unpacks them into `root` in it.
fn download(folder: &Path) -> anyhow::Result<()> {
    let output = Command::new("apt-get")
        .arg("download")
        .args(PACKAGES)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .context("run apt-get")?;
    ensure!(
        output.status.success(),
        "apt-get download {}: {}",
        PACKAGES.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    for entry in fs::read_dir(folder).context("list packages")? {
        let package = entry.context("list packages")?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            let mut dpkg = Command::new("dpkg");
            let status = dpkg.arg("--extract").arg(&package).arg(folder.join("root")).status();
            let status = status.context("run dpkg")?;
            ensure!(status.success(), "unpack {}", package.display());
        }
    }
    Ok(())
}
