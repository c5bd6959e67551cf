//! Waits until an exit code stands in a file, and ends with it: how a host that only serves learns that the job is over.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How often the file is looked at. Nobody waits for this end.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Ends with the code of a text that is none.
const UNREADABLE: u8 = 1;

/// Gives the code once it is there. An empty file, or none, says nothing yet.
pub(crate) fn end_with(file: &Path) -> io::Result<u8> {
    loop {
        match fs::read_to_string(file) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => return Ok(code(text.trim())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The code that a process can end with: of a larger number its last byte, as the system has it.
fn code(text: &str) -> u8 {
    text.parse::<i32>().map_or(UNREADABLE, |number| number.to_le_bytes()[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_in_the_file_is_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("end");
        let waiting = std::thread::spawn({
            let file = file.clone();
            move || end_with(&file)
        });
        fs::write(&file, "").unwrap();
        fs::write(&file, "3\n").unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), 3);
        assert_eq!((code("0"), code("255"), code("x")), (0, 255, UNREADABLE));
    }
}
