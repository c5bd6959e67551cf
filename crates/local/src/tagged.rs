//! Which rank wrote a line: launchers put a tag before it, each in its own way, when asked to.

/// The options that make a launcher tag its lines, by what `--version` says it is.
pub(crate) fn tag_options(version: &str) -> &'static [&'static str] {
    match tag_form(version) {
        Some(TagForm::OpenMpi4) => &["--tag-output"],
        Some(TagForm::Prrte) => &["--output", "tag-detailed"],
        Some(TagForm::Hydra) => &["-prepend-pattern", "[%r@%h] "],
        None => &[],
    }
}

/// How a launcher writes its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagForm {
    /// `[1,0]<stdout>:text`, Open MPI 4 and earlier.
    OpenMpi4,
    /// `[1,0][host:pid]<stdout>: text`, Open MPI 5.
    Prrte,
    /// `[0@host] text`, MPICH and Intel MPI; we choose the form.
    Hydra,
}

/// How the launcher that says this of itself writes its tags.
pub(crate) fn tag_form(version: &str) -> Option<TagForm> {
    if version.contains("Open MPI") || version.contains("OpenRTE") || version.contains("PRRTE") {
        let after_name = version.split(") ").nth(1).unwrap_or_default();
        let major: u32 = after_name.split('.').next().and_then(|it| it.parse().ok()).unwrap_or(5);
        Some(if major < 5 { TagForm::OpenMpi4 } else { TagForm::Prrte })
    } else if version.contains("HYDRA") || version.contains("Intel") {
        Some(TagForm::Hydra)
    } else {
        None
    }
}

/// A line without its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'text> {
    /// The rank that wrote it; absent when there was no tag.
    pub(crate) rank: Option<u32>,
    /// The host of that rank, when the tag tells.
    pub(crate) host: Option<&'text str>,
    /// Whether the rank wrote it to its standard error; absent when the tag does not tell.
    pub(crate) is_error: Option<bool>,
    /// What it wrote.
    pub(crate) text: &'text [u8],
}

/// Takes the tag off a line.
pub(crate) fn untag(line: &[u8], form: TagForm) -> Line<'_> {
    let tagged = match form {
        TagForm::OpenMpi4 | TagForm::Prrte => open_mpi(line, form),
        TagForm::Hydra => hydra(line),
    };
    tagged.unwrap_or(Line { rank: None, host: None, is_error: None, text: line })
}

fn open_mpi(line: &[u8], form: TagForm) -> Option<Line<'_>> {
    let (tag, mut rest) = split_at(line.strip_prefix(b"[")?, b']')?;
    let rank = Some(number(split_at(tag, b',')?.1)?);
    let mut host = None;
    if let Some((place, after)) = rest.strip_prefix(b"[").and_then(|it| split_at(it, b']')) {
        host = std::str::from_utf8(place).ok()?.rsplit_once(':').map(|(host, _)| host);
        // What the launcher says of a rank that it has forgotten already.
        host = host.filter(|host| *host != "unknown");
        rest = after;
    }
    let (is_error, text) = match rest.strip_prefix(b"<stdout>:") {
        Some(text) => (false, text),
        None => (true, rest.strip_prefix(b"<stderr>:")?),
    };
    let blank = (form == TagForm::Prrte).then(|| text.strip_prefix(b" ")).flatten();
    Some(Line { rank, host, is_error: Some(is_error), text: blank.unwrap_or(text) })
}

fn hydra(line: &[u8]) -> Option<Line<'_>> {
    let (tag, rest) = split_at(line.strip_prefix(b"[")?, b']')?;
    let (rank, host) = split_at(tag, b'@')?;
    let (rank, host) = (Some(number(rank)?), std::str::from_utf8(host).ok());
    Some(Line { rank, host, is_error: None, text: rest.strip_prefix(b" ")? })
}

fn split_at(bytes: &[u8], mark: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == mark)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

fn number(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told<'text> = (Option<u32>, Option<&'text str>, Option<bool>, &'text str);

    fn told(line: &str, form: TagForm) -> Told<'_> {
        let line = untag(line.as_bytes(), form);
        let text = std::str::from_utf8(line.text).expect("it was text");
        (line.rank, line.host, line.is_error, text)
    }

    #[test]
    fn every_launchers_tag_is_understood() {
        let (close, blank) = (TagForm::OpenMpi4, TagForm::Prrte);
        assert_eq!(told("[1,12]<stdout>:step 3", close), (Some(12), None, Some(false), "step 3"));
        assert_eq!(told("[1,0]<stderr>: in", close), (Some(0), None, Some(true), " in"));
        assert_eq!(
            told("[1,2][ring-worker-1:417]<stdout>: x", blank),
            (Some(2), Some("ring-worker-1"), Some(false), "x")
        );
        let forgotten = "[1,2][unknown:unknown]<stderr>: x";
        assert_eq!(told(forgotten, blank), (Some(2), None, Some(true), "x"));
        assert_eq!(
            told("[3@ring-worker-1]  x", TagForm::Hydra),
            (Some(3), Some("ring-worker-1"), None, " x")
        );
    }

    #[test]
    fn lines_that_only_look_like_it_are_left_alone() {
        let lines = [
            "",
            "[",
            "[]",
            "[x] y",
            "[1,0]<stdin>:z",
            "[info] ready",
            "plain",
            "[12]",
            "[12] x",
            "[1,x]<stdout>:q",
            "[proxy:0@ring] HYDU_create_process",
            "[1,0][x]",
            "[1,0][a:1] b",
        ];
        for line in lines {
            for form in [TagForm::OpenMpi4, TagForm::Prrte, TagForm::Hydra] {
                assert_eq!(told(line, form), (None, None, None, line));
            }
        }
    }

    #[test]
    fn launchers_are_asked_in_their_own_words() {
        assert_eq!(tag_options("mpirun (Open MPI) 4.1.4"), ["--tag-output"]);
        assert_eq!(tag_options("mpirun.openmpi (OpenRTE) 4.1.4"), ["--tag-output"]);
        assert_eq!(tag_options("mpirun (Open MPI) 5.0.11"), ["--output", "tag-detailed"]);
        assert_eq!(tag_options("mpirun (Open MPI) 10.0.1"), ["--output", "tag-detailed"]);
        assert_eq!(tag_options("HYDRA build details:"), ["-prepend-pattern", "[%r@%h] "]);
        assert_eq!(tag_options("something else"), [""; 0]);
    }
}
