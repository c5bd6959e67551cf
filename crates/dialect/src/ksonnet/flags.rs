//! A command line as ksonnet took it: `--flag value`, `--flag=value`, `-c value`, in any order.

use super::KsError;

/// Words and flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) words: Vec<String>,
    pub(super) flags: Vec<(String, String)>,
}

/// Flags that stand alone.
const SWITCHES: [&str; 9] = [
    "help",
    "verbose",
    "dry-run",
    "skip-gc",
    "tls-skip-verify",
    "insecure-skip-tls-verify",
    "skip-default-registries",
    "as-string",
    "force",
];

/// Short flags and what they stand for.
const SHORT: [(char, &str); 6] = [
    ('c', "component"),
    ('o', "format"),
    ('n', "namespace"),
    ('h', "help"),
    ('v', "verbose"),
    ('f', "format"),
];

/// Flags about reaching a cluster and about talking: they are taken anywhere and change nothing that is written.
const EVERYWHERE: [&str; 9] = [
    "verbose",
    "kubeconfig",
    "context",
    "cluster",
    "user",
    "tls-skip-verify",
    "insecure-skip-tls-verify",
    "request-timeout",
    "skip-default-registries",
];

impl Line {
    pub(super) fn read(arguments: &[String]) -> Result<Self, KsError> {
        let mut line = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--" {
                line.words.extend(rest.by_ref().cloned());
            } else if let Some(flag) = argument.strip_prefix("--") {
                line.flag(flag, &mut rest)?;
            } else if let Some(letters) = argument.strip_prefix('-').filter(|it| !it.is_empty()) {
                line.short(letters, &mut rest)?;
            } else {
                line.words.push(argument.clone());
            }
        }
        Ok(line)
    }

    fn flag<'line>(
        &mut self,
        flag: &str,
        rest: &mut impl Iterator<Item = &'line String>,
    ) -> Result<(), KsError> {
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None if SWITCHES.contains(&flag) => (flag, "true".to_owned()),
            // As ksonnet did: the next word is the value, whatever it looks like (`--args -n,1000`).
            None => (flag, rest.next().cloned().ok_or_else(|| needs_value(flag))?),
        };
        self.flags.push((name.to_owned(), value));
        Ok(())
    }

    fn short<'line>(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'line String>,
    ) -> Result<(), KsError> {
        let mut characters = letters.chars();
        let first = characters.next().unwrap_or_default();
        let Some((_, name)) = SHORT.iter().find(|(letter, _)| *letter == first) else {
            return Err(KsError::usage(format!("unknown shorthand flag: '{first}' in -{letters}")));
        };
        let attached = characters.as_str();
        let value = if SWITCHES.contains(name) {
            "true".to_owned()
        } else if attached.is_empty() {
            rest.next().cloned().ok_or_else(|| needs_value(name))?
        } else {
            attached.strip_prefix('=').unwrap_or(attached).to_owned()
        };
        self.flags.push(((*name).to_owned(), value));
        Ok(())
    }

    /// Takes a flag out; the last one counts.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.take_all(name).pop()
    }

    /// Takes every flag of that name out; commas separate several values, as in `-c a,b`.
    pub(super) fn take_all(&mut self, name: &str) -> Vec<String> {
        let (taken, left) =
            std::mem::take(&mut self.flags).into_iter().partition(|it| it.0 == name);
        self.flags = left;
        let taken: Vec<(String, String)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Refuses flags that nobody took.
    pub(super) fn finish(self) -> Result<Vec<String>, KsError> {
        let unknown = self.flags.iter().find(|(name, _)| !EVERYWHERE.contains(&name.as_str()));
        match unknown {
            Some((name, _)) => Err(KsError::usage(format!("unknown flag: --{name}"))),
            None => Ok(self.words),
        }
    }

    /// Whether the flag is one that every command takes.
    pub(super) fn is_everywhere(name: &str) -> bool {
        EVERYWHERE.contains(&name)
    }
}

fn needs_value(flag: &str) -> KsError {
    KsError::usage(format!("flag needs an argument: --{flag}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<Line, KsError> {
        Line::read(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn values_may_begin_with_a_dash() {
        let line = line("simple ring8 --gpus 8 --args -n,1000 --image=a=b -c x -cy -v").unwrap();
        assert_eq!(line.words, ["simple", "ring8"]);
        let flag =
            |name: &str| line.flags.iter().rev().find(|it| it.0 == name).map(|it| it.1.as_str());
        assert_eq!(flag("args"), Some("-n,1000"));
        assert_eq!(flag("image"), Some("a=b"));
        assert_eq!(flag("component"), Some("y"));
        assert_eq!(flag("verbose"), Some("true"));
    }

    #[test]
    fn what_nobody_takes_is_refused() {
        assert!(line("x --gpus").is_err());
        assert!(line("x -z").is_err());
        let mut one = line("x --nope 1 --env dev").unwrap();
        assert_eq!(one.take("env").as_deref(), Some("dev"));
        assert_eq!(one.finish().unwrap_err().to_string(), "unknown flag: --nope");
        assert_eq!(line("a -- --b").unwrap().finish().unwrap(), ["a", "--b"]);
    }
}
