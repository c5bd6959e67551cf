//! The messages on the wire: a kind, a length and at most 64 KiB of payload; bytes enter, whole frames leave.
//!
//! A header is five bytes: one for the kind, four for the payload's length, most significant first.

use thiserror::Error;

/// No frame carries more: a peer can make us hold this much and not a byte beyond it.
pub(crate) const LONGEST_PAYLOAD: usize = (64 << 10) - HEADER;

/// Bytes before the payload.
pub(crate) const HEADER: usize = 5;

/// What a frame says. The numbers are the protocol; a new kind takes a new number, and an old reader refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Launcher: a piece of the command text.
    Command = 1,
    /// Launcher: the command is complete, start it. Payload: one byte, 1 when standard input follows.
    Start = 2,
    /// Launcher: standard input, never more than the credit granted.
    Stdin = 3,
    /// Launcher: end of standard input.
    StdinEnd = 4,
    /// Launcher: deliver this signal. Payload: its number, one byte.
    Signal = 5,
    /// Launcher: are you there? Asked by `ready` in place of a launch.
    Probe = 6,
    /// Launcher: nobody takes this output any more. Payload: the number of the stream, one byte.
    OutputClosed = 7,
    /// Launcher: the exit has arrived, and whoever asked for the command is there to know it.
    Taken = 8,

    /// Host: the answer to a probe.
    Here = 64,
    /// Host: the command runs. Payload: its process id there, four bytes.
    Started = 65,
    /// Host: standard output.
    Stdout = 66,
    /// Host: standard error.
    Stderr = 67,
    /// Host: this much more standard input may be sent. Payload: four bytes.
    Credit = 68,
    /// Host: a rank was seen. Payload: a JSON object.
    Rank = 69,
    /// Host: the host itself is being stopped; the exit that follows is not the command's own doing.
    Stopping = 70,
    /// Host: the command exited. Payload: its code, one byte. Nothing follows.
    Exited = 71,
    /// Host: the command died of a signal. Payload: its number, one byte. Nothing follows.
    Killed = 72,
    /// Host: nothing was started, and why. Payload: one byte (the exit code to give) and text.
    Refused = 73,
}

/// One whole message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) payload: Vec<u8>,
}

/// Why bytes are not frames.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum FrameError {
    #[error("a frame of unknown kind {0}")]
    UnknownKind(u8),
    #[error("a frame of {0} bytes, more than the {LONGEST_PAYLOAD} allowed")]
    TooLong(u32),
}

/// The five bytes before a payload. A payload beyond the limit is a fault of ours, cut so that the peer sees it as one.
pub(crate) fn header(kind: Kind, length: usize) -> [u8; HEADER] {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [kind as u8, a, b, c, d]
}

/// Takes the first whole frame off the front of `bytes`, if there is one.
pub(crate) fn take(bytes: &mut Vec<u8>) -> Result<Option<Frame>, FrameError> {
    let Some((&[kind, a, b, c, d], rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let kind = Kind::try_from(kind)?;
    let announced = u32::from_be_bytes([a, b, c, d]);
    let length = announced as usize;
    if length > LONGEST_PAYLOAD {
        return Err(FrameError::TooLong(announced));
    }
    let Some(payload) = rest.get(..length) else {
        return Ok(None);
    };
    let payload = payload.to_vec();
    bytes.drain(..HEADER + length);
    Ok(Some(Frame { kind, payload }))
}

impl TryFrom<u8> for Kind {
    type Error = FrameError;

    fn try_from(number: u8) -> Result<Self, FrameError> {
        Ok(match number {
            1 => Self::Command,
            2 => Self::Start,
            3 => Self::Stdin,
            4 => Self::StdinEnd,
            5 => Self::Signal,
            6 => Self::Probe,
            7 => Self::OutputClosed,
            8 => Self::Taken,
            64 => Self::Here,
            65 => Self::Started,
            66 => Self::Stdout,
            67 => Self::Stderr,
            68 => Self::Credit,
            69 => Self::Rank,
            70 => Self::Stopping,
            71 => Self::Exited,
            72 => Self::Killed,
            73 => Self::Refused,
            unknown => return Err(FrameError::UnknownKind(unknown)),
        })
    }
}

impl Frame {
    /// The payload as the one byte it should be.
    pub(crate) fn byte(&self) -> Option<u8> {
        match *self.payload {
            [byte] => Some(byte),
            _ => None,
        }
    }

    /// The payload as the one number it should be.
    pub(crate) fn number(&self) -> Option<u32> {
        self.payload.as_slice().try_into().ok().map(u32::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: Kind, payload: &[u8]) -> Vec<u8> {
        [&header(kind, payload.len())[..], payload].concat()
    }

    #[test]
    fn frames_are_taken_one_by_one() {
        let mut buffer = [bytes(Kind::Stdin, b"abc"), bytes(Kind::StdinEnd, b"")].concat();
        assert_eq!(
            take(&mut buffer),
            Ok(Some(Frame { kind: Kind::Stdin, payload: b"abc".to_vec() }))
        );
        assert_eq!(take(&mut buffer), Ok(Some(Frame { kind: Kind::StdinEnd, payload: vec![] })));
        assert_eq!(take(&mut buffer), Ok(None));
    }

    #[test]
    fn truncated_frame_waits_for_its_rest() {
        let whole = bytes(Kind::Stdout, b"hello");
        for length in 0..whole.len() {
            let mut part = whole[..length].to_vec();
            assert_eq!(take(&mut part), Ok(None));
            assert_eq!(part.len(), length);
        }
    }

    #[test]
    fn lengths_beyond_the_limit_are_refused_before_any_payload() {
        let mut buffer = vec![Kind::Stdin as u8, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(take(&mut buffer), Err(FrameError::TooLong(u32::MAX)));
        let mut one_more = header(Kind::Stdin, LONGEST_PAYLOAD + 1).to_vec();
        assert!(matches!(take(&mut one_more), Err(FrameError::TooLong(_))));
    }

    #[test]
    fn every_number_is_its_own_kind_or_refused() {
        let known = (0..=u8::MAX).filter_map(|number| {
            Kind::try_from(number).ok().inspect(|kind| assert_eq!(*kind as u8, number))
        });
        assert_eq!(known.count(), 18);
    }
}
