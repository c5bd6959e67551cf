//! OpenPAI's classes of exit codes: which failures another attempt may cure.
//!
//! Two generations of tables exist. The later one is used; where the older differs (it took segmentation faults and the
//! like for unknown) the later knows better. The older also kept 170 to 255 for itself: codes of a launcher on YARN that
//! does not exist here. A command that ends with one of them means something of its own, so they are unknown.
//!
//! A SIGKILL that the platform sent is seen as what the platform did. Any other is most often the kernel's, for want of memory: OpenPAI's last version
//! took it for that, and no retry cures it. It may have hit one rank only, whose launcher then ends with 137.

use crate::Cause;

/// Whether another attempt may cure a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It may: the platform was at fault. Retries are free.
    Transient,
    /// It may, later: jobs got into each other's way. Retries are free.
    Conflict,
    /// It cannot.
    NonTransient,
    /// Nobody knows: retries are counted.
    Unknown,
}

/// The class of an exit code.
pub const fn class_of(code: i32, cause: Cause) -> Class {
    match cause {
        Cause::OutOfMemory => return Class::NonTransient,
        Cause::Evicted | Cause::Preempted | Cause::NodeLost | Cause::Deleted => {
            return Class::Transient;
        }
        Cause::CannotStart => return Class::Unknown,
        Cause::Exited => {}
    }
    match code {
        // SIGINT, SIGTERM, a lost container, an error of the container daemon.
        130 | 143 | 154 | 193 => Class::Transient,
        // SIGILL, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGPIPE, out of memory, out of disk.
        132 | 135 | 136 | 137 | 139 | 141 | 196 | 198 => Class::NonTransient,
        // Codes of the platform itself.
        -7112 | -7113 | -7252 => Class::Conflict,
        -7121 | -7122 | -7152 | -7200 | -7251 | -7300 | -7351 | -7400 => Class::NonTransient,
        -7103..=-7100
        | -7111..=-7110
        | -7120
        | -7126..=-7123
        | -7151..=-7150
        | -7154..=-7153
        | -7203..=-7201
        | -7250
        | -7301
        | -7303
        | -7350
        | -7353..=-7352 => Class::Transient,
        _ => Class::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_class_that_the_later_table_gives() {
        for (code, class) in [
            (1, Class::Unknown),
            (255, Class::Unknown),
            (134, Class::Unknown),
            (143, Class::Transient),
            (-7100, Class::Transient),
            (-7126, Class::Transient),
            (-7252, Class::Conflict),
            (-7351, Class::NonTransient),
            (139, Class::NonTransient),
            (-8000, Class::Unknown),
        ] {
            assert_eq!(class_of(code, Cause::Exited), class, "{code}");
        }
    }

    #[test]
    fn codes_that_an_old_launcher_kept_for_itself_are_the_commands_own() {
        let known = [193, 196, 198];
        for code in (170..=255).filter(|code| !known.contains(code)) {
            assert_eq!(class_of(code, Cause::Exited), Class::Unknown, "{code}");
        }
    }

    #[test]
    fn a_kill_that_the_platform_did_not_send_is_for_want_of_memory() {
        assert_eq!(class_of(137, Cause::Exited), Class::NonTransient);
        assert_eq!(class_of(137, Cause::Deleted), Class::Transient);
    }

    #[test]
    fn what_the_platform_did_is_transient_whatever_the_code() {
        assert_eq!(class_of(1, Cause::Evicted), Class::Transient);
        assert_eq!(class_of(137, Cause::OutOfMemory), Class::NonTransient);
    }
}
