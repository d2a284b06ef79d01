//! Opening files in places that an agent, or a cloned repository, can write to.
//!
//! Everything under a project's `.descartes/` and in the state folder is opened, made, renamed and
//! removed through this module:
//!
//! * **no symbolic link is followed** in any part of the path (`openat2` with
//!   `RESOLVE_NO_SYMLINKS`, or folder by folder with `O_NOFOLLOW` where the kernel or a sandbox has no
//!   `openat2`). The folders *above* are the user's own business: those of a project may be links,
//!   `.descartes` itself may not; the state folder may be reached over links, nothing in it may be
//!   one ([`link_free`] resolves what lies above, once);
//! * **only regular files of this user** are opened: never a FIFO (opening one does not wait), a
//!   device, a socket or a folder. Root may use everybody's;
//! * **nothing is written into a file with a second name** (a hard link): the other name may be
//!   somebody's file.
//!
//! What is refused is an [`io::Error`] that holds a [`Refusal`]; it names the file and what to do.
//! Rename and remove act on the name itself, never on what it points to.
//!
//! Files that a person names (prompts, specifications, task files) may lie behind links; they are
//! read by [`read_user_file`], which refuses only what is no regular file.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{
    AT_FDCWD, AtFlags, OFlag, OpenHow, RenameFlags, ResolveFlag, openat, openat2, renameat,
    renameat2,
};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{Uid, UnlinkatFlags, unlinkat};

use crate::real_path::{PROJECT_FOLDER, real_path};

/// Why a file was not opened although it is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A part of the path is a symbolic link.
    #[error("{} is a symbolic link, which is not followed here", .0.display())]
    Link(PathBuf),
    /// It is something else than a file.
    #[error("it is {what}, not a regular file")]
    NotAFile {
        /// What was to be opened.
        path: PathBuf,
        /// What it is: `a FIFO`, `a folder`.
        what: &'static str,
    },
    /// It is another user's.
    #[error("it belongs to another user (uid {uid})")]
    Foreign {
        /// What was to be opened.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// It was to be written, and has another name besides.
    #[error("it is a hard link: the file would change under its other names too")]
    SecondName(PathBuf),
}

impl Refusal {
    /// The refusal in an error, where it is one.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// What a person can type.
    pub fn hint(&self) -> String {
        match self {
            Self::Link(path) if path.file_name() == Some(OsStr::new(PROJECT_FOLDER)) => format!(
                "remove the link (rm {0}): descartes creates the folder again; to keep the state \
                 elsewhere, use --state-file",
                quoted(path)
            ),
            Self::Link(path) => format!(
                "replace it with the file or folder itself, or remove the link: rm {}",
                quoted(path)
            ),
            Self::NotAFile { path, what } if *what == DEVICE => format!(
                "choose another file: {} is a device and is left alone",
                quoted(path)
            ),
            Self::NotAFile { path, .. } => {
                format!("move it out of the way: mv {0} {0}.old", quoted(path))
            }
            Self::Foreign { path, .. } => format!(
                "run descartes as its owner, or move it out of the way: mv {0} {0}.old",
                quoted(path)
            ),
            Self::SecondName(path) => format!(
                "replace it with a copy: cp {0} {0}.copy && mv {0}.copy {0}",
                quoted(path)
            ),
        }
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::new(ErrorKind::InvalidInput, refusal)
    }
}

/// A path as a shell takes it.
pub(crate) use descartes_text::shell::path as quoted;

/// How a file is opened; files that are made get mode 0600.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    read: bool,
    write: bool,
    append: bool,
    create: bool,
    create_new: bool,
    truncate: bool,
    any_owner: bool,
}

impl Options {
    /// Opens nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// To be read.
    pub fn read(mut self) -> Self {
        self.read = true;
        self
    }

    /// To be written.
    pub fn write(mut self) -> Self {
        self.write = true;
        self
    }

    /// To be written at its end.
    pub fn append(mut self) -> Self {
        self.append = true;
        self
    }

    /// Made where it is not there.
    pub fn create(mut self) -> Self {
        self.create = true;
        self
    }

    /// Made; it is an error where it is there.
    pub fn create_new(mut self) -> Self {
        self.create_new = true;
        self
    }

    /// Emptied, after every check.
    pub fn truncate(mut self) -> Self {
        self.truncate = true;
        self
    }

    /// Another user's will do: for files that are only read, and not believed for that.
    pub fn any_owner(mut self) -> Self {
        self.any_owner = true;
        self
    }

    fn writes(self) -> bool {
        self.write || self.append
    }

    fn flags(self) -> OFlag {
        let mut flags = match (self.read, self.writes()) {
            (true, true) => OFlag::O_RDWR,
            (false, true) => OFlag::O_WRONLY,
            _ => OFlag::O_RDONLY,
        };
        flags |= OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        flags.set(OFlag::O_APPEND, self.append);
        flags.set(OFlag::O_CREAT, self.create || self.create_new);
        flags.set(OFlag::O_EXCL, self.create_new);
        flags
    }
}

/// Opens a file of ours.
pub fn open(options: Options, path: &Path) -> io::Result<File> {
    let file = match raw(path, options.flags(), 0o600) {
        Ok(fd) => File::from(fd),
        Err(errno) => return Err(told(path, errno)),
    };
    let meta = file.metadata()?;
    let owner = (!options.any_owner).then_some(Uid::effective().as_raw());
    check(path, &meta, owner, options.writes())?;
    if options.truncate && meta.len() > 0 {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Opens a file of ours to read it.
pub fn open_read(path: &Path) -> io::Result<File> {
    open(Options::new().read(), path)
}

/// The bytes of a file of ours.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_all(open_read(path)?)
}

/// The bytes of a file under `.descartes/` that may be another user's, as a config file may.
pub fn read_any_owner(path: &Path) -> io::Result<Vec<u8>> {
    read_all(open(Options::new().read().any_owner(), path)?)
}

/// The bytes of a file that a person named: links are followed; a FIFO, a device, a socket or a
/// folder is refused at once.
pub fn read_user_file(path: &Path) -> io::Result<Vec<u8>> {
    read_all(open_user_file(path, Options::new().read())?)
}

/// Opens a file that a person named; see [`read_user_file`].
pub fn open_user_file(path: &Path, options: Options) -> io::Result<File> {
    let flags = options.flags() | OFlag::O_CLOEXEC;
    let file = match openat(AT_FDCWD, path, flags, Mode::S_IRUSR | Mode::S_IWUSR) {
        Ok(fd) => File::from(fd),
        Err(errno @ (Errno::ENXIO | Errno::EISDIR)) => match std::fs::metadata(path) {
            Ok(meta) if !meta.is_file() => return Err(not_a_file(path, &meta)),
            _ => return Err(errno.into()),
        },
        Err(errno) => return Err(errno.into()),
    };
    let meta = file.metadata()?;
    match meta.is_file() {
        true => Ok(file),
        false => Err(not_a_file(path, &meta)),
    }
}

/// The same as text.
pub fn read_user_text(path: &Path) -> io::Result<String> {
    text_of(read_user_file(path)?)
}

/// How a person's file is named from now on, so that [`read_fixed_text`] reads it: as it was typed
/// where no link leads to it, else the file behind the link.
pub fn fix_user_file(path: &Path) -> io::Result<PathBuf> {
    match strict(
        path,
        OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW,
        0,
    ) {
        Ok(fd) => match File::from(fd).metadata()?.is_symlink() {
            true => std::fs::canonicalize(path),
            false => Ok(path.to_owned()),
        },
        Err(_) => std::fs::canonicalize(path),
    }
}

/// The text of a file that [`fix_user_file`] named: what has become a link since, or led through
/// one, or is no file any more, is refused.
pub fn read_fixed_text(path: &Path) -> io::Result<String> {
    let flags = Options::new().read().flags() | OFlag::O_CLOEXEC;
    let file = strict(path, flags, 0).map_err(|errno| told(path, errno))?;
    let file = File::from(file);
    check(path, &file.metadata()?, None, false)?;
    text_of(read_all(file)?)
}

/// The text of a file that a person named, for a reader in `folder`, which an agent writes to: from
/// there no link may lead out.
pub fn read_text_within(folder: &Path, path: &Path) -> io::Result<String> {
    let named = folder.join(path);
    let real = std::fs::canonicalize(&named)?;
    let is_inside = named.starts_with(folder);
    if is_inside && !real.starts_with(std::fs::canonicalize(folder)?) {
        return Err(Refusal::Link(first_link_below(folder, &named)).into());
    }
    read_fixed_text(&real)
}

fn first_link_below(folder: &Path, path: &Path) -> PathBuf {
    let depth = folder.components().count();
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    parts.retain(|part| part.components().count() > depth);
    let link = parts
        .into_iter()
        .find(|part| std::fs::symlink_metadata(part).is_ok_and(|meta| meta.is_symlink()));
    link.unwrap_or(path).to_owned()
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

fn read_all(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is at a path of ours. The last part may be a link, and is not followed.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    let fd = raw(path, OFlag::O_PATH | OFlag::O_NOFOLLOW, 0).map_err(|errno| told(path, errno))?;
    File::from(fd).metadata()
}

/// Whether there is anything of this name, whatever it is.
pub fn is_there(path: &Path) -> bool {
    !matches!(metadata(path), Err(error) if error.kind() == ErrorKind::NotFound)
}

/// Whether there is a regular file of this name.
pub fn is_file(path: &Path) -> bool {
    metadata(path).is_ok_and(|meta| meta.is_file())
}

/// The names in a folder of ours.
pub fn names_in(folder: &Path) -> io::Result<Vec<OsString>> {
    let fd = folder_fd(folder)?;
    std::fs::read_dir(as_path(&fd))?
        .map(|entry| Ok(entry?.file_name()))
        .collect()
}

/// Opens a folder of ours, for instance to sync it.
pub fn open_folder(folder: &Path) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let fd = raw(folder, flags, 0).map_err(|errno| told(folder, errno))?;
    Ok(File::from(fd))
}

/// Makes a folder, mode 0700. Its parent must be there.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let (parent, name) = parent(folder)?;
    Ok(mkdirat(&parent, name, Mode::S_IRWXU)?)
}

/// Gives a file another name; what has that name is replaced, never followed.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let ((old, from), (new, to)) = (parent(from)?, parent(to)?);
    Ok(renameat(&old, from, &new, to)?)
}

/// Exchanges two files.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let ((old, one), (new, other)) = (parent(one)?, parent(other)?);
    let flags = RenameFlags::RENAME_EXCHANGE;
    Ok(renameat2(&old, one, &new, other, flags)?)
}

/// Removes a file, or a link itself.
pub fn remove_file(path: &Path) -> io::Result<()> {
    let (parent, name) = parent(path)?;
    Ok(unlinkat(&parent, name, UnlinkatFlags::NoRemoveDir)?)
}

/// Removes a folder with everything in it; links in it go, what they point to stays.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let (parent, name) = parent(path)?;
    std::fs::remove_dir_all(as_path(&parent).join(name))
}

/// The path with the links above it resolved: above `.descartes` where it lies in one, else above
/// its last part. What comes after that is left as it is, and refused when it is opened should it
/// be a link.
pub fn link_free(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let (above, below) = match in_project(&path) {
        Some((project, below)) => (project, below),
        None => match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => (folder, PathBuf::from(name)),
            _ => return real_path(&path),
        },
    };
    Ok(real_path(above)?.join(below))
}

/// The project and the path below it that begins with `.descartes`, where there is one.
fn in_project(path: &Path) -> Option<(&Path, PathBuf)> {
    let ours = path
        .ancestors()
        .find(|part| part.file_name() == Some(OsStr::new(PROJECT_FOLDER)))?;
    let project = ours.parent()?;
    let below = path.strip_prefix(project).ok()?;
    let plain = |part| matches!(part, Component::Normal(_));
    let plain = below.components().all(plain);
    plain.then(|| (project, below.to_owned()))
}

fn check(path: &Path, meta: &Metadata, owner: Option<u32>, writes: bool) -> io::Result<()> {
    if !meta.is_file() {
        return Err(not_a_file(path, meta));
    }
    if owner.is_some_and(|us| !may_use(us, meta.uid())) {
        let (path, uid) = (path.to_owned(), meta.uid());
        return Err(Refusal::Foreign { path, uid }.into());
    }
    if writes && meta.nlink() > 1 {
        return Err(Refusal::SecondName(path.to_owned()).into());
    }
    Ok(())
}

fn may_use(us: u32, owner: u32) -> bool {
    us == owner || us == 0
}

const DEVICE: &str = "a device";

/// Refuses what must not be moved out of the way by us: a device, and a folder that is not in our own.
pub(crate) fn may_be_set_aside(path: &Path) -> io::Result<()> {
    let meta = metadata(path)?;
    let kind = meta.file_type();
    let ours = path
        .parent()
        .and_then(Path::file_name)
        .is_some_and(|name| name == PROJECT_FOLDER);
    let device = kind.is_char_device() || kind.is_block_device();
    match device || (kind.is_dir() && !ours) {
        true => Err(not_a_file(path, &meta)),
        false => Ok(()),
    }
}

fn not_a_file(path: &Path, meta: &Metadata) -> io::Error {
    let kind = meta.file_type();
    let what = match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () if kind.is_symlink() => return Refusal::Link(path.to_owned()).into(),
        () => DEVICE,
    };
    let path = path.to_owned();
    Refusal::NotAFile { path, what }.into()
}

/// Says what stood in the way, where it is one of ours to say.
fn told(path: &Path, errno: Errno) -> io::Error {
    match errno {
        Errno::ELOOP | Errno::ENOTDIR => {
            let links = first_link(path);
            links.map_or_else(|| errno.into(), |link| Refusal::Link(link).into())
        }
        // A FIFO without a reader, a socket; a folder that was to be written.
        Errno::ENXIO | Errno::EISDIR => match std::fs::symlink_metadata(path) {
            Ok(meta) if !meta.is_file() => not_a_file(path, &meta),
            _ => errno.into(),
        },
        other => other.into(),
    }
}

/// The first link in the path, without those above the project.
fn first_link(path: &Path) -> Option<PathBuf> {
    let is_link =
        |path: &&Path| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    let above = in_project(path).map_or(0, |(project, _)| project.components().count());
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    parts.retain(|part| part.components().count() > above);
    parts.into_iter().find(is_link).map(Path::to_owned)
}

/// The folder that a name stands in, and the name.
fn parent(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    Ok((folder_fd(folder)?, name))
}

fn folder_fd(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
    raw(folder, flags, 0).map_err(|errno| told(folder, errno))
}

/// A folder that is open, as a path whose resolution nobody can change.
fn as_path(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Opens without following links. A project's folder as it was typed may have links above
/// `.descartes`: those are resolved first.
fn raw(path: &Path, flags: OFlag, mode: u32) -> nix::Result<OwnedFd> {
    let flags = flags | OFlag::O_CLOEXEC;
    match strict(path, flags, mode) {
        Err(errno @ (Errno::ELOOP | Errno::ENOTDIR)) if in_project(path).is_some() => {
            match link_free(path) {
                Ok(free) if free != path => strict(&free, flags, mode),
                _ => Err(errno),
            }
        }
        other => other,
    }
}

fn strict(path: &Path, flags: OFlag, mode: u32) -> nix::Result<OwnedFd> {
    /// Asked once: kernels before 5.6, and sandboxes that do not know it, have none.
    static MISSING: AtomicBool = AtomicBool::new(false);
    let mode = match flags.contains(OFlag::O_CREAT) {
        true => Mode::from_bits_truncate(mode),
        false => Mode::empty(),
    };
    if MISSING.load(Ordering::Relaxed) {
        return walk(path, flags, mode);
    }
    loop {
        let how = OpenHow::new()
            .flags(flags)
            .mode(mode)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        match openat2(AT_FDCWD, path, how) {
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(Errno::ENOSYS) => {
                MISSING.store(true, Ordering::Relaxed);
                return walk(path, flags, mode);
            }
            // Some sandboxes say this of every call that they do not know.
            Err(Errno::EPERM) => return walk(path, flags, mode),
            other => return other,
        }
    }
}

/// The same by hand: folder by folder, each opened without following.
fn walk(path: &Path, flags: OFlag, mode: Mode) -> nix::Result<OwnedFd> {
    let step = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let start = match path.is_absolute() {
        true => "/",
        false => ".",
    };
    let mut folder = openat(AT_FDCWD, start, step, Mode::empty())?;
    let mut parts = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let (flags, mode) = match last {
            true => (flags | OFlag::O_NOFOLLOW, mode),
            false => (step | OFlag::O_NOFOLLOW, Mode::empty()),
        };
        let name = part.as_os_str();
        let opened = openat(&folder, name, flags, mode).map_err(|errno| match errno {
            // What is no folder may be a link to one.
            Errno::ENOTDIR if is_link(&folder, name) => Errno::ELOOP,
            other => other,
        })?;
        match last {
            true => return Ok(opened),
            false => folder = opened,
        }
    }
    openat(&folder, ".", flags, mode)
}

fn is_link(folder: impl AsFd, name: &OsStr) -> bool {
    let found = fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW);
    found
        .is_ok_and(|stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFLNK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::mkfifo;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn refusal<T: std::fmt::Debug>(result: io::Result<T>) -> Refusal {
        let error = result.unwrap_err();
        Refusal::of(&error)
            .unwrap_or_else(|| panic!("{error}"))
            .clone()
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("proj/.descartes")).unwrap();
        fs::create_dir_all(base.join("elsewhere")).unwrap();
        fs::write(base.join("elsewhere/target"), "precious").unwrap();
        (temp, base)
    }

    #[test]
    fn no_link_is_followed_in_any_part_and_nothing_is_changed_behind_it() {
        let (_temp, base) = place();
        let ours = base.join("proj/.descartes");
        symlink(base.join("elsewhere/target"), ours.join("lock")).unwrap();
        symlink(base.join("elsewhere"), ours.join("loops")).unwrap();
        let all = Options::new().read().write().create().truncate();
        for path in [
            ours.join("lock"),
            ours.join("loops/target"),
            ours.join("loops/new"),
        ] {
            let link = if path.ends_with("lock") {
                "lock"
            } else {
                "loops"
            };
            for options in [all, Options::new().read(), Options::new().append().create()] {
                assert_eq!(
                    refusal(open(options, &path)),
                    Refusal::Link(ours.join(link))
                );
            }
        }
        for result in [
            make_folder(&ours.join("loops/made")),
            remove_file(&ours.join("loops/target")),
            remove_tree(&ours.join("loops/target")),
            rename(&ours.join("loops/target"), &ours.join("x")),
            names_in(&ours.join("loops")).map(drop),
        ] {
            assert_eq!(refusal(result), Refusal::Link(ours.join("loops")));
        }
        remove_tree(&ours.join("loops")).unwrap();
        remove_file(&ours.join("lock")).unwrap();
        let left: Vec<_> = fs::read_dir(base.join("elsewhere")).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(
            fs::read(base.join("elsewhere/target")).unwrap(),
            b"precious"
        );
    }

    #[test]
    fn a_linked_project_is_the_users_business_a_linked_descartes_folder_is_not() {
        let (_temp, base) = place();
        fs::write(base.join("proj/.descartes/f"), "ours").unwrap();
        symlink(base.join("proj"), base.join("link")).unwrap();
        let through = base.join("link/.descartes/f");
        assert_eq!(read(&through).unwrap(), b"ours");
        assert_eq!(link_free(&through).unwrap(), base.join("proj/.descartes/f"));
        fs::create_dir(base.join("other")).unwrap();
        symlink(base.join("elsewhere"), base.join("other/.descartes")).unwrap();
        let path = base.join("other/.descartes/target");
        assert_eq!(
            refusal(read(&path)),
            Refusal::Link(base.join("other/.descartes"))
        );
        assert_eq!(link_free(&path).unwrap(), path);
        // A file that was named by a person: its folder may be a link, it may not.
        symlink(base.join("elsewhere"), base.join("there")).unwrap();
        let typed = base.join("there/target");
        assert_eq!(refusal(read(&typed)), Refusal::Link(base.join("there")));
        assert_eq!(read(&link_free(&typed).unwrap()).unwrap(), b"precious");
        symlink(base.join("elsewhere/target"), base.join("elsewhere/named")).unwrap();
        let named = link_free(&base.join("there/named")).unwrap();
        assert_eq!(refusal(read(&named)), Refusal::Link(named));
        assert!(
            metadata(&base.join("elsewhere/named"))
                .unwrap()
                .is_symlink()
        );
        assert_eq!(
            read_user_file(&base.join("there/named")).unwrap(),
            b"precious"
        );
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let (_temp, base) = place();
        mkfifo(&base.join("fifo"), Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(base.join("socket")).unwrap();
        for (name, what) in [
            ("fifo", "a FIFO"),
            ("socket", "a socket"),
            ("proj", "a folder"),
        ] {
            let path = base.join(name);
            let expected = Refusal::NotAFile {
                path: path.clone(),
                what,
            };
            for options in [
                Options::new().read(),
                Options::new().write().create(),
                Options::new().read().write().create(),
            ] {
                assert_eq!(refusal(open(options, &path)), expected, "{options:?}");
            }
            assert_eq!(refusal(read_user_file(&path)), expected);
        }
        let null = refusal(read_user_file(Path::new("/dev/null")));
        assert!(matches!(
            null,
            Refusal::NotAFile {
                what: "a device",
                ..
            }
        ));
    }

    #[test]
    fn a_file_with_a_second_name_is_read_and_not_written() {
        let (_temp, base) = place();
        let (one, two) = (
            base.join("elsewhere/target"),
            base.join("proj/.descartes/lock"),
        );
        fs::hard_link(&one, &two).unwrap();
        assert_eq!(read(&two).unwrap(), b"precious");
        let written = open(Options::new().write().create().truncate(), &two);
        assert_eq!(refusal(written), Refusal::SecondName(two));
        assert_eq!(fs::read(one).unwrap(), b"precious");
    }

    #[test]
    fn a_file_that_a_person_named_is_not_read_once_it_has_become_a_link() {
        let (_temp, base) = place();
        let prompt = base.join("proj/PROMPT.md");
        fs::write(&prompt, "task").unwrap();
        let fixed = fix_user_file(&prompt).unwrap();
        assert_eq!(read_fixed_text(&fixed).unwrap(), "task");
        fs::remove_file(&prompt).unwrap();
        symlink(base.join("elsewhere/target"), &prompt).unwrap();
        assert_eq!(
            refusal(read_fixed_text(&fixed)),
            Refusal::Link(prompt.clone())
        );
        // Typed by a person while it was a link: what it led to then is the file.
        let fixed = fix_user_file(&prompt).unwrap();
        assert_eq!(read_fixed_text(&fixed).unwrap(), "precious");
        fs::remove_file(&prompt).unwrap();
        mkfifo(&prompt, Mode::S_IRWXU).unwrap();
        assert!(matches!(
            refusal(read_fixed_text(&prompt)),
            Refusal::NotAFile { .. }
        ));
        assert_eq!(read_fixed_text(&fixed).unwrap(), "precious");
    }

    #[test]
    fn no_link_leads_out_of_the_folder_of_an_agent() {
        let (_temp, base) = place();
        let slot = base.join("proj");
        fs::write(slot.join("real.md"), "spec").unwrap();
        symlink("real.md", slot.join("inside.md")).unwrap();
        symlink(base.join("elsewhere"), slot.join("out")).unwrap();
        let read = |path: &str| read_text_within(&slot, Path::new(path));
        assert_eq!(read("inside.md").unwrap(), "spec");
        assert_eq!(refusal(read("out/target")), Refusal::Link(slot.join("out")));
        let outside = base.join("elsewhere/target");
        assert_eq!(read(outside.to_str().unwrap()).unwrap(), "precious");
    }

    #[test]
    fn only_root_uses_the_files_of_others() {
        assert!(may_use(1000, 1000) && may_use(0, 1000));
        assert!(!may_use(1000, 0) && !may_use(1000, 1001));
    }

    #[test]
    fn without_openat2_the_same_is_done_by_hand() {
        let (_temp, base) = place();
        symlink(base.join("elsewhere"), base.join("proj/.descartes/loops")).unwrap();
        symlink("target", base.join("elsewhere/named")).unwrap();
        let read = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let try_it = |path: &str| walk(&base.join(path), read, Mode::empty()).map(drop);
        assert_eq!(try_it("elsewhere/target"), Ok(()));
        assert_eq!(try_it("elsewhere/../elsewhere/target"), Ok(()));
        assert_eq!(try_it("elsewhere"), Ok(()));
        assert_eq!(try_it("proj/.descartes/loops/target"), Err(Errno::ELOOP));
        assert_eq!(try_it("proj/.descartes/loops"), Err(Errno::ELOOP));
        assert_eq!(try_it("elsewhere/named"), Err(Errno::ELOOP));
        assert_eq!(try_it("elsewhere/target/x"), Err(Errno::ENOTDIR));
        assert_eq!(try_it("elsewhere/none"), Err(Errno::ENOENT));
        let make = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        walk(&base.join("elsewhere/new"), make, Mode::S_IRWXU).unwrap();
        assert!(base.join("elsewhere/new").is_file());
    }
}
