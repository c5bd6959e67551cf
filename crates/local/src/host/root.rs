//! A host's root directory: the machine's own, but for what the host has to itself.
//!
//! The root is a small file system in memory. Top folders of the machine are bound into it, so that programs, data and
//! results are where they always are. Folders into which the host needs files of its own (`/etc`, `/opt`, …) are made
//! anew and filled with links to the machine's entries, which are kept under a hidden path. Nothing of it is on a disk, and all of it
//! goes when the host goes.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::{HostFile, HostSpec, SetUpError, io_step, step};

/// Where the machine's own root is inside a host.
const MACHINE: &str = ".machine";

/// Top folders that every host has to itself.
const OWN: [&str; 3] = ["proc", "tmp", "dev"];

/// Builds the root and moves into it.
pub(super) fn enter(spec: &HostSpec) -> Result<(), SetUpError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    step(rustix::mount::mount_change("/", private), "keep mounts to the host")?;
    let root = Root { at: spec.stage.clone() };
    tmpfs(&root.at, "mode=755,size=64m")?;
    root.bind_machine(&needed_folders(spec))?;
    root.make_own_folders(spec)?;
    for file in &spec.files {
        root.write(file)?;
    }
    root.write(&HostFile { path: "/etc/hosts".into(), mode: 0o644, text: spec.etc_hosts.clone() })?;
    root.write(&HostFile {
        path: "/etc/hostname".into(),
        mode: 0o644,
        text: format!("{}\n", spec.name),
    })?;
    for (from, to) in &spec.programs {
        root.bind_file(from, to)?;
    }
    for (from, to) in &spec.folders {
        let inside = root.at.join(relative(to));
        make_folder(&inside)?;
        bind(from, &inside)?;
    }
    for (at, target) in &spec.links {
        let inside = root.at.join(relative(at));
        remove_if_there(&inside)?;
        io_step(symlink(target, &inside), format!("link {}", at.display()))?;
    }
    root.become_root()
}

/// The folders of the root in which files must be made, from the top down.
fn needed_folders(spec: &HostSpec) -> BTreeSet<PathBuf> {
    let files = spec.files.iter().map(|file| file.path.as_path());
    let programs = spec.programs.iter().map(|(_, to)| to.as_path());
    let folders = spec.folders.iter().map(|(_, to)| to.as_path());
    let links = spec.links.iter().map(|(at, _)| at.as_path());
    let etc = [Path::new("/etc/hosts")];
    files
        .chain(programs)
        .chain(folders)
        .chain(links)
        .chain(etc)
        .flat_map(|path| path.ancestors().skip(1))
        .map(|folder| relative(folder).to_owned())
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect()
}

struct Root {
    at: PathBuf,
}

impl Root {
    /// Fills the root with the machine's entries: bound where the host needs nothing of its own inside, remade where it does.
    fn bind_machine(&self, needed: &BTreeSet<PathBuf>) -> Result<(), SetUpError> {
        let machine = self.at.join(MACHINE);
        make_folder(&machine)?;
        bind(Path::new("/"), &machine)?;
        let entries = io_step(fs::read_dir("/"), "list /")?;
        for entry in entries {
            let name = io_step(entry, "list /")?.file_name();
            if needed.contains(Path::new(&name)) || OWN.iter().any(|own| name == *own) {
                continue;
            }
            self.carry_over(&name)?;
        }
        for folder in needed {
            make_folder(&self.at.join(folder))?;
            self.link_entries(folder, needed)?;
        }
        Ok(())
    }

    /// Puts a top entry of the machine into the root.
    fn carry_over(&self, name: &OsStr) -> Result<(), SetUpError> {
        let (from, to) = (Path::new("/").join(name), self.at.join(name));
        let kind = io_step(fs::symlink_metadata(&from), format!("look at {}", from.display()))?;
        if kind.is_symlink() {
            let target =
                io_step(fs::read_link(&from), format!("read the link {}", from.display()))?;
            return io_step(symlink(target, &to), format!("link {}", to.display()));
        }
        if kind.is_dir() {
            make_folder(&to)?;
            return bind(&from, &to);
        }
        io_step(
            symlink(Path::new("/").join(MACHINE).join(name), &to),
            format!("link {}", to.display()),
        )
    }

    /// Links the machine's entries of a folder that the host has remade.
    fn link_entries(&self, folder: &Path, needed: &BTreeSet<PathBuf>) -> Result<(), SetUpError> {
        let Ok(entries) = fs::read_dir(Path::new("/").join(folder)) else {
            return Ok(());
        };
        for entry in entries {
            let name = io_step(entry, format!("list /{}", folder.display()))?.file_name();
            let path = folder.join(name);
            if needed.contains(&path) {
                continue;
            }
            let target = Path::new("/").join(MACHINE).join(&path);
            io_step(symlink(target, self.at.join(&path)), format!("link /{}", path.display()))?;
        }
        Ok(())
    }

    fn make_own_folders(&self, spec: &HostSpec) -> Result<(), SetUpError> {
        let proc = self.at.join("proc");
        make_folder(&proc)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        step(rustix::mount::mount("proc", &proc, "proc", flags, None), "mount /proc")?;
        let dev = self.at.join("dev");
        make_folder(&dev)?;
        bind(Path::new("/dev"), &dev)?;
        tmpfs(&dev.join("shm"), &format!("mode=1777,size={}m", spec.shm_mib))?;
        let tmp = self.at.join("tmp");
        make_folder(&tmp)?;
        tmpfs(&tmp, "mode=1777")?;
        for folder in &spec.visible_in_tmp {
            let inside = self.at.join(relative(folder));
            make_folder(&inside)?;
            bind(folder, &inside)?;
        }
        Ok(())
    }

    /// Writes a file of the host's own, in place of a link to the machine's.
    fn write(&self, file: &HostFile) -> Result<(), SetUpError> {
        use std::io::Write as _;
        let path = self.at.join(relative(&file.path));
        let what = || format!("write {}", file.path.display());
        remove_if_there(&path)?;
        let opened =
            fs::OpenOptions::new().write(true).create_new(true).mode(file.mode).open(&path);
        let mut opened = io_step(opened, what())?;
        io_step(opened.write_all(file.text.as_bytes()), what())
    }

    fn bind_file(&self, from: &Path, to: &Path) -> Result<(), SetUpError> {
        let inside = self.at.join(relative(to));
        remove_if_there(&inside)?;
        io_step(fs::File::create_new(&inside), format!("make {}", to.display()))?;
        step(
            rustix::mount::mount_bind(from, &inside),
            format!("bind {} to {}", from.display(), to.display()),
        )
    }

    /// Makes this the root and drops the machine's, which stays reachable only through what was bound.
    fn become_root(&self) -> Result<(), SetUpError> {
        step(rustix::process::chdir(&self.at), "enter the host's root")?;
        step(rustix::process::pivot_root(".", "."), "change the root")?;
        step(rustix::mount::unmount(".", UnmountFlags::DETACH), "leave the machine's root")?;
        step(rustix::process::chdir("/"), "enter /")
    }
}

fn tmpfs(at: &Path, options: &str) -> Result<(), SetUpError> {
    let options = std::ffi::CString::new(options).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mounted = rustix::mount::mount("tmpfs", at, "tmpfs", flags, options.as_c_str());
    step(mounted, format!("mount a file system in memory at {}", at.display()))
}

fn bind(from: &Path, to: &Path) -> Result<(), SetUpError> {
    let bound = rustix::mount::mount_bind_recursive(from, to);
    step(bound, format!("bind {} to {}", from.display(), to.display()))
}

fn make_folder(path: &Path) -> Result<(), SetUpError> {
    io_step(fs::create_dir_all(path), format!("make the folder {}", path.display()))
}

fn remove_if_there(path: &Path) -> Result<(), SetUpError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(SetUpError::Io(format!("replace {}", path.display()), error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A path of the host as one below its root. Steps upwards are dropped: no file leaves the root.
fn relative(path: &Path) -> PathBuf {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => None,
        })
        .collect()
}
