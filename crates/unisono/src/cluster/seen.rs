//! How far a log was passed on: lines with the moment they were written enter, those that are new leave without it. So a log can
//! be asked for again where it was cut, and nothing is lost or told twice. Pure.

use k8s_openapi::jiff::Timestamp;

/// What was passed on of one log.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The latest moment of any line.
    newest: Option<Timestamp>,
    /// Lines of that moment's second, and of the second before.
    counts: [u64; 2],
    /// How many lines are still to come that were passed on before, when the log was asked for again.
    repeated: u64,
    /// What there is of a line that has not ended.
    unended: Vec<u8>,
}

impl Seen {
    /// Since when the log is to be asked for (from its beginning where that is none). Servers take whole seconds. A pod writes two
    /// streams, so a line may stand behind one that is a little younger, be it of the next second.
    pub(super) fn begin(&mut self) -> Option<Timestamp> {
        self.repeated = self.counts.iter().sum();
        Timestamp::from_second(self.newest?.as_second() - 1).ok()
    }

    /// What is new of a line. One that was cut is kept: it comes again, or was the last.
    pub(super) fn take(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        let (moment, text) = stamped(&line);
        let is_repeated = match moment {
            Some(moment) => self.repeated > 0 && Some(moment) <= self.newest,
            // The end of a long line that began before what was asked for.
            None => self.repeated > 0,
        };
        if !line.ends_with(b"\n") {
            if !is_repeated {
                self.unended = text.to_vec();
            }
            return None;
        }
        if is_repeated {
            self.repeated -= u64::from(moment.is_some());
            return None;
        }
        self.unended.clear();
        if let Some(moment) = moment {
            // What was passed on before may be gone: a log that grows too large begins anew.
            self.repeated = 0;
            self.count(moment);
        }
        Some(text.to_vec())
    }

    /// The rest of a log that has ended: its last line, if nothing ended that.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.unended);
        (!line.is_empty()).then_some(line)
    }

    fn count(&mut self, moment: Timestamp) {
        let newest = self.newest.get_or_insert(moment);
        let ahead = moment.as_second() - newest.as_second();
        *newest = moment.max(*newest);
        self.counts = match (ahead, self.counts) {
            (0, [this, before]) => [this + 1, before],
            (-1, [this, before]) => [this, before + 1],
            (1, [this, _]) => [1, this],
            (2.., _) => [1, 0],
            // Nobody asks for it again.
            (_, counts) => counts,
        };
    }
}

/// The moment before a line, where it has one, and the line.
fn stamped(line: &[u8]) -> (Option<Timestamp>, &[u8]) {
    let at = line.iter().position(|byte| *byte == b' ').unwrap_or(0);
    let (moment, text) = line.split_at(at);
    let moment = std::str::from_utf8(moment).ok().and_then(|it| it.parse().ok());
    (moment, if moment.is_some() { &text[1..] } else { line })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is passed on of an answer, whose lines have the seconds of their moments.
    fn passed(seen: &mut Seen, answer: &str) -> String {
        let lines = answer.split_inclusive('\n').map(|line| {
            let (second, text) = line.split_once(' ').unwrap();
            match second {
                "-" => text.as_bytes().to_vec(),
                second => format!("2030-01-01T00:00:{second}Z {text}").into_bytes(),
            }
        });
        let new: Vec<u8> = lines.filter_map(|line| seen.take(line)).flatten().collect();
        String::from_utf8(new).unwrap()
    }

    fn since(seen: &mut Seen) -> Option<String> {
        seen.begin().map(|it| it.to_string())
    }

    #[test]
    fn lines_that_come_again_are_passed_on_once() {
        let mut seen = Seen::default();
        assert_eq!(since(&mut seen), None);
        assert_eq!(passed(&mut seen, "05.1 a\n06.2 b\n06.9 c\n"), "a\nb\nc\n");
        assert_eq!(since(&mut seen).as_deref(), Some("2030-01-01T00:00:05Z"));
        assert_eq!(passed(&mut seen, "05.1 a\n06.2 b\n06.9 c\n07.0 d\n"), "d\n");
        assert_eq!(since(&mut seen).as_deref(), Some("2030-01-01T00:00:06Z"));
        assert_eq!(passed(&mut seen, "06.2 b\n06.9 c\n07.0 d\n"), "");
        assert_eq!(since(&mut seen).as_deref(), Some("2030-01-01T00:00:06Z"));
        assert_eq!(passed(&mut seen, "06.2 b\n06.9 c\n07.0 d\n09 e\n09 e\n"), "e\ne\n");
        seen.begin();
        assert_eq!(passed(&mut seen, "09 e\n09 e\n09 e\n"), "e\n", "three of one moment");
    }

    #[test]
    fn lines_of_two_streams_need_not_stand_in_the_order_of_their_moments() {
        let mut seen = Seen::default();
        assert_eq!(passed(&mut seen, "05.9 a\n06.0 b\n"), "a\nb\n");
        seen.begin();
        assert_eq!(passed(&mut seen, "05.9 a\n06.0 b\n05.95 c\n06.1 d\n"), "c\nd\n");
        seen.begin();
        assert_eq!(passed(&mut seen, "05.9 a\n06.0 b\n05.95 c\n06.1 d\n06.1 e\n"), "e\n");
    }

    #[test]
    fn a_line_that_was_cut_comes_again_as_a_whole_or_was_the_last() {
        let mut seen = Seen::default();
        assert_eq!(passed(&mut seen, "05 a\n05 be"), "a\n");
        seen.begin();
        assert_eq!(passed(&mut seen, "05 a\n05 begun\n06 la"), "begun\n");
        seen.begin();
        assert_eq!(passed(&mut seen, "05 a\n05 begun\n06 last"), "");
        assert_eq!(seen.rest().as_deref(), Some(&b"last"[..]));
        assert_eq!(seen.rest(), None);
        assert_eq!(passed(&mut seen, "07 cut"), "");
        seen.begin();
        assert_eq!(seen.rest().as_deref(), Some(&b"cut"[..]), "it never came again");
    }

    #[test]
    fn of_a_log_that_began_anew_everything_is_new() {
        let mut seen = Seen::default();
        assert_eq!(passed(&mut seen, "05 a\n05 b\n05 c\n"), "a\nb\nc\n");
        seen.begin();
        assert_eq!(passed(&mut seen, "06 d\n06 e\n"), "d\ne\n");
    }

    #[test]
    fn a_line_without_a_moment_is_the_end_of_one_or_a_line() {
        let mut seen = Seen::default();
        assert_eq!(passed(&mut seen, "- a b\n05 c\n"), "a b\nc\n");
        seen.begin();
        assert_eq!(passed(&mut seen, "- the end of a long one\n05 c\n06 d\n"), "d\n");
    }
}
