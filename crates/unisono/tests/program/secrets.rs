//! Values of OpenPAI's `secrets` stand in the commands that run, and in nothing that is shown.

use crate::environment::Environment;

const JOB: &str = "
protocolVersion: 2
name: fetch
type: job
secrets: {token: s3cr3t-value}
prerequisites: [{type: dockerimage, name: image, uri: lab/x}]
taskRoles:
  main:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: ['mpirun -np 1 ./fetch --token <% $secrets.token %>']
  helper:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: ['./help <%$secrets.token%>']
";

#[test]
fn a_plan_shows_the_reference_and_never_the_value() {
    let environment = Environment::new();
    environment.file("job.yaml", JOB);
    for engine in ["local", "kubernetes"] {
        let text = environment.run(&["plan", "job.yaml", "--engine", engine]);
        let json = environment.run(&["plan", "job.yaml", "--engine", engine, "--output", "json"]);
        for ended in [&text, &json] {
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            assert!(ended.stdout.contains("--token <% $secrets.token %>"), "{}", ended.stdout);
            let all = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!all.contains("s3cr3t-value"), "{all}");
        }
        assert!(text.stdout.contains("./help <% $secrets.token %>"), "{}", text.stdout);
    }
}

#[test]
fn a_conversion_says_that_it_writes_secrets_down() {
    let environment = Environment::new();
    environment.file("job.yaml", JOB);
    let ended = environment.run(&["convert", "job.yaml", "--to", "unisono"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("warning[secret-written]"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("s3cr3t-value"), "{}", ended.stderr);
}
