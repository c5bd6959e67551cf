//! Any job of the neutral model can be written as `UnisonoJob` and is read back the same.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use unisono_job::{
    CleanUp, CodeFolder, Command, Dialect, EndRule, EnvVar, Extras, Flavour, Gang, Group, Image,
    Job, JobName, LaunchRights, LauncherStart, MpiChoice, MpiFrom, Origins, Policies, PortRequest,
    Quantity, Resources, RestartPolicy, Retry, RetryCount, Runs, Secrets, Shell, Slots, SlotsFrom,
};

use crate::{Options, read};

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_written_job_is_read_back(job in jobs()) {
        let written = super::write(&job);
        prop_assert_eq!(&written.notes, &[]);
        let reading = read(written.text.as_bytes(), &Options::default()).remove(0);
        let Some(back) = reading.job else {
            return Err(TestCaseError::fail(format!("{:#?}\n{}", reading.notes, written.text)));
        };
        prop_assert_eq!(reading.notes, &[]);
        prop_assert_eq!(stripped(&back), stripped(&job), "{}", written.text);
        prop_assert_eq!(super::write(&back).text, written.text, "the second writing differs");
    }
}

/// The job without how its values came to be known.
fn stripped(job: &Job) -> Job {
    let mut job = job.clone();
    job.origins = Origins::default();
    job.mpi.from = MpiFrom::Unknown;
    for group in &mut job.groups {
        group.slots.from = SlotsFrom::Stated;
    }
    job
}

/// Text as people and machines write it, with all that YAML could take for something else.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z][a-z0-9/._-]{0,12}",
        1 => "[ -~]{1,20}".prop_filter("not blank", |it| !it.trim().is_empty()),
        1 => "[a-zé\\n\"'#:{}$ ]{0,20}x",
        1 => select(vec!["no", "~", "null", "1e3", "0777", "=", "<<", "- a", "a: b", "|", "2020-01-01", "\t x"])
            .prop_map(str::to_owned),
    ]
}

fn names() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9]{0,8}"
}

fn commands() -> impl Strategy<Value = Command> {
    let shells = select(vec![Shell::Sh, Shell::Bash, Shell::StrictBash]);
    let lines = prop_oneof![texts(), Just("mpirun -np 6 -x A ./a".to_owned())];
    prop_oneof![
        vec(texts(), 1..4).prop_map(Command::Words),
        (shells, lines).prop_map(|(shell, text)| Command::Line { shell, text }),
        vec(texts(), 0..3).prop_map(Command::ImageEntry),
    ]
}

fn quantities() -> impl Strategy<Value = BTreeMap<String, Quantity>> {
    let texts = select(vec!["1", "500m", "2Gi", "1.5", "1e3", "0", "007"]);
    let names = select(vec!["cpu", "memory", "nvidia.com/gpu"]).prop_map(str::to_owned);
    btree_map(names, texts.prop_map(|it| Quantity::parse(it).unwrap()), 0..3)
}

fn extras() -> impl Strategy<Value = Extras> {
    let ssh = option::of(texts());
    (texts(), texts(), 0_usize..2, ssh).prop_map(|(label, name, container, ssh_auth_path)| {
        let containers =
            serde_json::json!([{"name": name, "tty": false}, {"name": "b", "args": []}]);
        let template = serde_json::json!({
            "metadata": {"labels": {"a": label}},
            "spec": {"x": [null, 1, -2.5, {}], "containers": containers},
        });
        let only = ["metadata.labels", "spec.x"];
        let theirs = [["spec.containers[0].tty", "spec.containers[1]"], ["spec.containers[0]", ""]];
        let paths = only.into_iter().chain(theirs[container]).filter(|it| !it.is_empty());
        Extras {
            template: template.to_string(),
            kubernetes_only: paths.map(str::to_owned).collect(),
            container,
            ssh_auth_path,
        }
    })
}

/// Everything of a group but its name, what it runs, and its end rule.
fn parts() -> impl Strategy<Value = Group> {
    let image = option::of(prop_oneof![
        texts().prop_map(Image::Container),
        texts().prop_map(Image::AzureEnvironment)
    ]);
    let env = vec((texts(), option::of(prop_oneof![texts(), Just(String::new())])), 0..3);
    let ports = vec((texts(), option::of(1_u16..), 0_u16..3), 0..3);
    let restart = select(vec![
        RestartPolicy::Never,
        RestartPolicy::OnFailure,
        RestartPolicy::Always,
        RestartPolicy::ExitCode,
    ]);
    let from =
        select(vec![SlotsFrom::Stated, SlotsFrom::Gpus, SlotsFrom::Default, SlotsFrom::Role]);
    let counts = (1_u32..5, 0_u32..5, from, option::of(0_u64..9), any::<bool>());
    let paths = (option::of(texts()), option::of(texts()));
    (image, (quantities(), quantities()), env, ports, restart, counts, paths, option::of(extras()))
        .prop_map(|(image, (limits, requests), env, ports, restart, counts, paths, extras)| Group {
            name: String::new(),
            replicas: counts.0,
            slots: Slots { count: counts.1, from: counts.2 },
            runs: Runs::Ranks(None),
            image,
            resources: Resources { limits, requests },
            env: env.into_iter().map(|(name, value)| EnvVar { name, value }).collect(),
            working_dir: paths.0,
            code: paths.1.map(|path| CodeFolder { path }),
            ports: ports
                .into_iter()
                .map(|(label, begin_at, count)| PortRequest { label, begin_at, count })
                .collect(),
            shm_mib: counts.3,
            rdma: counts.4,
            end: EndRule::NEVER,
            restart,
            extras,
        })
}

/// A group in one of the roles that a job with (or without) a launch line has.
fn groups(launches: bool) -> impl Strategy<Value = Group> {
    (parts(), commands(), 0..3, option::of(1_u32..3), option::of(1_u32..3)).prop_map(
        move |(mut group, command, role, failed, succeeded)| {
            group.runs = match (launches, role) {
                (true, 0) => Runs::Ranks(None),
                (true, 1) => Runs::Ranks(Some(command)),
                (true, _) | (false, _) => Runs::Own(command),
            };
            let least = |count: Option<u32>| count.map(|it| it.min(group.replicas));
            group.end = EndRule { min_failed: least(failed), min_succeeded: least(succeeded) };
            group
        },
    )
}

fn launching() -> impl Strategy<Value = Group> {
    (parts(), commands(), any::<bool>(), any::<bool>()).prop_map(
        |(mut group, command, alone, first)| {
            group.runs = if alone { Runs::Launch(command) } else { Runs::LaunchOnFirst(command) };
            group.replicas = if alone { 1 } else { group.replicas };
            group.end = if first { EndRule::FIRST } else { EndRule::NEVER };
            group
        },
    )
}

fn all_groups() -> impl Strategy<Value = Vec<Group>> {
    let with =
        (launching(), vec(groups(true), 0..3), 0_usize..3).prop_map(|(first, mut rest, at)| {
            rest.insert(at.min(rest.len()), first);
            rest
        });
    prop_oneof![with, vec(groups(false), 1..4)].prop_map(|mut groups| {
        for (index, group) in groups.iter_mut().enumerate() {
            group.name = format!("Group_{index}.~-");
        }
        groups
    })
}

fn policies() -> impl Strategy<Value = Policies> {
    let retry = prop_oneof![
        (0_u32..9).prop_map(|limit| Retry::Backoff { limit }),
        select(vec![RetryCount::Always, RetryCount::UntilSuccess, RetryCount::Limited(4)])
            .prop_map(Retry::ByClass),
    ];
    let choices = (
        select(vec![CleanUp::None, CleanUp::Running, CleanUp::All]),
        select(vec![LauncherStart::AtOnce, LauncherStart::AfterWorkers]),
        any::<bool>(),
    );
    let seconds = (option::of(0..i64::MAX as u64), option::of(0..i64::MAX as u64));
    let gang = (
        option::of(0_u32..2),
        option::of(texts()),
        option::of(texts()),
        quantities(),
        option::of(0_u32..9),
    )
        .prop_map(|(min_members, queue, priority_class, min_resources, schedule)| Gang {
            min_members,
            queue,
            priority_class,
            min_resources,
            schedule_timeout_seconds: schedule,
        });
    (retry, 0_u32..5, choices, seconds, option::of(texts()), gang).prop_map(
        |(retry, gang_restarts, (clean_up, launcher_start, suspend), seconds, managed_by, gang)| {
            Policies {
                retry,
                gang_restarts,
                deadline_seconds: seconds.0,
                clean_up,
                ttl_seconds: seconds.1,
                suspend,
                managed_by,
                launcher_start,
                gang,
            }
        },
    )
}

fn jobs() -> impl Strategy<Value = Job> {
    let keys = || "([a-z]{1,9}\\.io/)?[A-Za-z0-9][A-Za-z0-9_.-]{0,9}";
    let maps = || btree_map(keys(), prop_oneof![texts(), Just(String::new())], 0..3);
    let name = prop_oneof![names(), "[A-Z][A-Za-z0-9_~. ]{0,80}"];
    let rights = select(vec![LaunchRights::Launcher, LaunchRights::Everybody]);
    let stated = option::of(select(vec![Flavour::OpenMpi, Flavour::Intel, Flavour::Mpich]));
    let head = (name, option::of(names()), select(Dialect::ALL.to_vec()), option::of(texts()));
    (head, (maps(), maps()), stated, all_groups(), rights, policies()).prop_map(
        |(head, (labels, annotations), stated, groups, launch_rights, policies)| {
            let mpi = stated.map_or_else(
                || super::inferred_mpi(&groups),
                |it| MpiChoice { flavour: Some(it), from: MpiFrom::Stated },
            );
            Job {
                name: JobName::new(head.0).unwrap(),
                namespace: head.1,
                dialect: head.2,
                experiment: head.3,
                labels,
                annotations,
                mpi,
                groups,
                launch_rights,
                policies,
                secrets: Secrets::default(),
                origins: Origins::default(),
            }
        },
    )
}

#[test]
fn a_name_that_does_not_fit_is_told() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut job = jobs().new_tree(&mut runner).unwrap().current();
    job.groups[0].name = "x".repeat(64);
    let written = super::write(&job);
    assert_eq!(
        written.notes.iter().map(|it| it.code.name).collect::<Vec<_>>(),
        ["lost-in-conversion"]
    );
    assert!(read(written.text.as_bytes(), &Options::default())[0].job.is_some());
}
