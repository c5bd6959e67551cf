//! Which rank wrote a line: launchers put a tag before it, each in its own way, when asked to.

/// The options that make a launcher tag its lines, by what `--version` says it is.
pub(crate) fn tag_options(version: &str) -> &'static [&'static str] {
    if version.contains("Open MPI") || version.contains("OpenRTE") || version.contains("PRRTE") {
        &["--tag-output"]
    } else if version.contains("HYDRA") || version.contains("Intel") {
        &["-prepend-rank"]
    } else {
        &[]
    }
}

/// A line without its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'text> {
    /// The rank that wrote it; absent when there was no tag.
    pub(crate) rank: Option<u32>,
    /// Whether the rank wrote it to its standard error; absent when the tag does not tell.
    pub(crate) is_error: Option<bool>,
    /// What it wrote.
    pub(crate) text: &'text [u8],
}

/// How a launcher ends its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagEnd {
    /// Right before the text, as Open MPI 4 and earlier do.
    Close,
    /// With a blank before the text.
    Blank,
}

/// How the launcher that says this of itself ends its tags.
pub(crate) fn tag_end(version: &str) -> TagEnd {
    let major =
        version.split("(Open MPI) ").nth(1).and_then(|it| it.split('.').next()?.parse().ok());
    if major.is_some_and(|major: u32| major < 5) { TagEnd::Close } else { TagEnd::Blank }
}

/// Takes the tag off a line.
///
/// Open MPI 4 writes `[1,0]<stdout>:text`, Open MPI 5 `[job,0]<stdout>: text`, Hydra `[0] text`.
pub(crate) fn untag(line: &[u8], end: TagEnd) -> Line<'_> {
    let untagged = Line { rank: None, is_error: None, text: line };
    let Some((tag, rest)) = line.strip_prefix(b"[").and_then(|it| split_at(it, b']')) else {
        return untagged;
    };
    if let Some(text) = rest.strip_prefix(b" ")
        && let Some(rank) = number(tag)
    {
        return Line { rank: Some(rank), is_error: None, text };
    }
    let rank = split_at(tag, b',').and_then(|(_, rank)| number(rank));
    for (mark, is_error) in [(&b"<stdout>:"[..], false), (b"<stderr>:", true)] {
        if let Some(text) = rest.strip_prefix(mark)
            && rank.is_some()
        {
            let blank = if end == TagEnd::Blank { text.strip_prefix(b" ") } else { None };
            let text = blank.unwrap_or(text);
            return Line { rank, is_error: Some(is_error), text };
        }
    }
    untagged
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

    fn told(line: &str, end: TagEnd) -> (Option<u32>, Option<bool>, &str) {
        let line = untag(line.as_bytes(), end);
        (line.rank, line.is_error, std::str::from_utf8(line.text).expect("it was text"))
    }

    #[test]
    fn every_launchers_tag_is_understood() {
        assert_eq!(told("[1,12]<stdout>:step 3", TagEnd::Close), (Some(12), Some(false), "step 3"));
        assert_eq!(
            told("[1,0]<stderr>: indented", TagEnd::Close),
            (Some(0), Some(true), " indented")
        );
        assert_eq!(
            told("[prterun-n1-30@1,2]<stdout>: x", TagEnd::Blank),
            (Some(2), Some(false), "x")
        );
        assert_eq!(told("[3] y", TagEnd::Blank), (Some(3), None, "y"));
    }

    #[test]
    fn what_only_looks_like_a_tag_is_kept() {
        for line in [
            "",
            "[",
            "[]",
            "[x] y",
            "[1,0]<stdin>:z",
            "[info] ready",
            "plain",
            "[12]",
            "[1,x]<stdout>:q",
        ] {
            assert_eq!(told(line, TagEnd::Close), (None, None, line));
        }
    }

    #[test]
    fn open_mpi_ends_its_tags_with_a_blank_since_version_5() {
        assert_eq!(tag_end("mpirun (Open MPI) 4.1.4"), TagEnd::Close);
        assert_eq!(tag_end("mpirun (Open MPI) 5.0.11"), TagEnd::Blank);
        assert_eq!(tag_end("mpirun (Open MPI) 10.0.1"), TagEnd::Blank);
    }

    #[test]
    fn launchers_are_asked_in_their_own_words() {
        assert_eq!(tag_options("mpirun (Open MPI) 5.0.11"), ["--tag-output"]);
        assert_eq!(tag_options("HYDRA build details:"), ["-prepend-rank"]);
        assert_eq!(tag_options("something else"), [""; 0]);
    }
}
