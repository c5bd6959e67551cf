//! How a rank ends is written down by a witness, of which the rank knows nothing.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use unisono_agent::proof::{self, Event};
use unisono_testbed::kernel::tells_how_processes_end;

/// A rank that is this script, told to write its proof there.
fn rank(script: &str, proof: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unisono-agent"));
    command.args(["rank", "sh", "-c", script]).env("PMI_RANK", "4");
    command.env("UNISONO_AGENT_PROOF", proof).output().expect("it starts")
}

/// What the witness told, once it has; nothing where the kernel tells no witness anything.
fn told(proof: &Path) -> Option<(u32, i32)> {
    let end = Instant::now() + Duration::from_secs(60);
    while tells_how_processes_end() {
        let ended =
            proof::read(proof, 0).expect("a proof").into_iter().find_map(|it| match it.event {
                Event::RankEnded { rank, code, .. } => Some((rank, code)),
                _ => None,
            });
        if ended.is_some() {
            return ended;
        }
        assert!(Instant::now() < end, "the witness never told");
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

#[test]
fn exit_codes_and_signals_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
    {
        let proof = folder.path().join(code.to_string());
        rank(script, &proof);
        let expected = tells_how_processes_end().then_some((4, code));
        assert_eq!(told(&proof), expected, "{script}");
    }
}

#[test]
fn a_rank_has_no_child_and_its_output_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let proof = folder.path().join("proof");
    let output = rank("read child < /proc/$$/task/$$/children; echo \"[$child]\"", &proof);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[]\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
