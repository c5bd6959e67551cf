//! Which rank wrote a line: launchers put a tag before it, each in its own way, when asked to.

use unisono_agent::tags::{TagForm, suffix};

/// A line without its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'text> {
    /// The rank that wrote it.
    pub(crate) rank: u32,
    /// The host of that rank, when the tag tells.
    pub(crate) host: Option<&'text str>,
    /// Whether the rank wrote it to its standard error; absent when the tag does not tell.
    pub(crate) is_error: Option<bool>,
    /// What it wrote.
    pub(crate) text: &'text [u8],
}

/// What bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins<'text> {
    /// A tag.
    Tag(Line<'text>),
    /// No tag.
    Text,
    /// What would be a tag if the right bytes followed.
    Unfinished,
}

/// Looks for a tag at the beginning of bytes.
pub(crate) fn begins(bytes: &[u8], form: TagForm) -> Begins<'_> {
    let mut reader = Reader { rest: bytes };
    let tag = match form {
        TagForm::OpenMpi4 | TagForm::Prrte => open_mpi(&mut reader, form),
        TagForm::Hydra(mark) => hydra(&mut reader, mark),
    };
    match tag {
        Ok((rank, host, is_error)) => Begins::Tag(Line { rank, host, is_error, text: reader.rest }),
        Err(Miss::Other) => Begins::Text,
        Err(Miss::TooShort) => Begins::Unfinished,
    }
}

type Tag<'text> = Result<(u32, Option<&'text str>, Option<bool>), Miss>;

fn open_mpi<'text>(reader: &mut Reader<'text>, form: TagForm) -> Tag<'text> {
    reader.literal("[")?;
    reader.number()?;
    reader.literal(",")?;
    let rank = reader.number()?;
    reader.literal("]")?;
    let mut host = None;
    let is_detailed = reader.literal("[");
    if is_detailed.is_ok() {
        host = reader.until("]")?.rsplit_once(':').map(|(host, _)| host);
        // What the launcher says of a rank that it has forgotten already.
        host = host.filter(|host| *host != "unknown");
    } else if form == TagForm::Prrte || is_detailed == Err(Miss::TooShort) {
        is_detailed?;
    }
    let is_error = match reader.literal("<stdout>:") {
        Err(Miss::Other) => reader.literal("<stderr>:").map(|()| true)?,
        told => told.map(|()| false)?,
    };
    if form == TagForm::Prrte && reader.literal(" ") == Err(Miss::TooShort) {
        return Err(Miss::TooShort);
    }
    Ok((rank, host, Some(is_error)))
}

fn hydra<'text>(reader: &mut Reader<'text>, mark: Option<u32>) -> Tag<'text> {
    reader.literal("[")?;
    let rank = reader.number()?;
    reader.literal("@")?;
    let place = reader.until("] ")?;
    let host = match mark {
        Some(mark) => place.strip_suffix(&suffix(mark)).ok_or(Miss::Other)?,
        None => place,
    };
    Ok((rank, Some(host), None))
}

/// Why bytes do not begin with something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Miss {
    /// They begin with something else.
    Other,
    /// They end too early to tell.
    TooShort,
}

/// No host and process take more than this.
const LONGEST_PLACE: usize = 300;

struct Reader<'text> {
    rest: &'text [u8],
}

impl<'text> Reader<'text> {
    fn literal(&mut self, text: &str) -> Result<(), Miss> {
        if let Some(rest) = self.rest.strip_prefix(text.as_bytes()) {
            self.rest = rest;
            return Ok(());
        }
        Err(if text.as_bytes().starts_with(self.rest) { Miss::TooShort } else { Miss::Other })
    }

    fn number(&mut self) -> Result<u32, Miss> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        let is_possible = digits <= "4294967295".len();
        if rest.is_empty() && is_possible {
            return Err(Miss::TooShort);
        }
        let number = std::str::from_utf8(number).ok().and_then(|it| it.parse().ok());
        self.rest = rest;
        number.ok_or(Miss::Other)
    }

    /// What stands before a mark, on the same line.
    fn until(&mut self, mark: &str) -> Result<&'text str, Miss> {
        let near = self.rest.get(..LONGEST_PLACE).unwrap_or(self.rest);
        let Some(at) = near.windows(mark.len()).position(|it| it == mark.as_bytes()) else {
            let is_possible = near.len() < LONGEST_PLACE && !near.contains(&b'\n');
            return Err(if is_possible { Miss::TooShort } else { Miss::Other });
        };
        let (before, rest) = self.rest.split_at(at);
        let is_one_word = !before.iter().any(|byte| b"[]\n ".contains(byte));
        self.rest = rest.get(mark.len()..).unwrap_or_default();
        std::str::from_utf8(before).ok().filter(|_| is_one_word).ok_or(Miss::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told<'text> = (Option<u32>, Option<&'text str>, Option<bool>, &'text str);

    fn told(line: &str, form: TagForm) -> Told<'_> {
        let Begins::Tag(line) = begins(line.as_bytes(), form) else {
            return (None, None, None, line);
        };
        let text = std::str::from_utf8(line.text).expect("it was text");
        (Some(line.rank), line.host, line.is_error, text)
    }

    const HYDRA: TagForm = TagForm::Hydra(None);

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
            told("[3@ring-worker-1]  x", HYDRA),
            (Some(3), Some("ring-worker-1"), None, " x")
        );
        let marked = HYDRA.marked(0xbeef);
        assert_eq!(told("[3@w-1:0000beef] x", marked), (Some(3), Some("w-1"), None, "x"));
        for other in ["[3@w-1] x", "[3@w-1:0000bee0] x"] {
            assert_eq!(told(other, marked), (None, None, None, other));
        }
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
            for form in [TagForm::OpenMpi4, TagForm::Prrte, HYDRA] {
                assert_eq!(told(line, form), (None, None, None, line));
            }
        }
    }

    #[test]
    fn a_tag_that_is_cut_anywhere_is_unfinished_and_nothing_else_is() {
        for (tag, form) in [
            ("[1,12]<stdout>:", TagForm::OpenMpi4),
            ("[1,12]<stderr>:", TagForm::OpenMpi4),
            ("[1,2][ring-worker-1:417]<stderr>: ", TagForm::Prrte),
            ("[3@ring-worker-1] ", HYDRA),
            ("[3@ring-worker-1:0000beef] ", HYDRA.marked(0xbeef)),
        ] {
            for end in 0..tag.len() {
                assert_eq!(begins(&tag.as_bytes()[..end], form), Begins::Unfinished, "{tag} {end}");
            }
            assert!(matches!(begins(tag.as_bytes(), form), Begins::Tag(_)), "{tag}");
            for end in 1..tag.trim_end().len() {
                let broken = format!("{}\n", &tag[..end]);
                assert_eq!(begins(broken.as_bytes(), form), Begins::Text, "{broken}");
            }
        }
        let endless = format!("[1@{}", "x".repeat(LONGEST_PLACE));
        assert_eq!(begins(endless.as_bytes(), HYDRA), Begins::Text);
        assert_eq!(begins(b"[12345678901", TagForm::OpenMpi4), Begins::Text);
    }
}
