//! What docs/agent.md tells people to type on one machine does what it says.

use std::process::Command;

/// The commands of the page, in a folder of their own and on a port that is free.
fn commands(folder: &str, port: u16) -> String {
    let page = include_str!("../../../docs/agent.md");
    let (_, after) = page.split_once("Try it on one machine:\n\n```\n").expect("the page shows it");
    let (commands, _) = after.split_once("```").expect("a block ends");
    assert!(commands.contains("/tmp/job") && commands.contains(":7711"), "{commands}");
    let table = format!("\"version\":1,\"port\":{port}");
    commands
        .replace("/tmp/job", folder)
        .replace(":7711", &format!(":{port}"))
        .replace("\"version\":1", &table)
}

#[test]
fn the_page_of_the_agent_can_be_typed() {
    let folder = tempfile::tempdir().unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_unisono-agent")).parent().unwrap();
    // A port that was free a moment ago; whoever takes it meanwhile makes the test fail, not pass.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let commands = commands(&folder.path().join("job").display().to_string(), port);
    // `serve` needs a moment to listen, which a person takes anyway.
    let script = format!(
        "set -e\ntrap 'kill %1' EXIT\nunisono-agent() {{\n\
         if [ \"$1\" = serve ]; then exec unisono-agent \"$@\"; fi\n\
         if [ \"$1\" = rsh ]; then until (: </dev/tcp/127.0.0.1/{port}) 2>/dev/null; do :; done; fi\n\
         command unisono-agent \"$@\"\n}}\n{commands}"
    );
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash").args(["-c", &script]).env("PATH", path).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {told}", output.status);
    let here = Command::new("hostname").output().unwrap();
    assert_eq!(output.stdout, here.stdout, "{told}");
}
