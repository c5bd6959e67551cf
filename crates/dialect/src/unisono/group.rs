//! One entry of `spec.groups` into a group of the neutral job.

use unisono_job::{
    CodeFolder, CodeSource, Command, EndRule, EnvVar, Group, Image, Note, PortRequest, Resources,
    RestartPolicy, Runs, Shell, Slots,
};

use super::{Reader, choice, template, text, words};
use crate::codes;
use crate::kubernetes::quantities;
use crate::tree::Node;

impl Reader<'_> {
    /// The group; none when what it runs cannot be told.
    pub(super) fn group(&mut self, node: &Node) -> Option<Group> {
        let name = node.at(&["name"]).and_then(text)?;
        let replicas = number(node.at(&["replicas"])).unwrap_or(1);
        let runs = self.runs(node, &name)?;
        if matches!(runs, Runs::Launch(_)) && replicas != 1 {
            let message = format!("`run: Launch` is for one member, but `{name}` has {replicas}");
            let note = Note::new(&codes::INVALID, message)
                .hint("with `run: LaunchOnFirst` the first member launches and all host ranks");
            self.tell(note, node.get("replicas").unwrap_or(node));
        }
        if matches!(runs, Runs::LaunchOnFirst(_)) && replicas == 0 {
            let note = Note::new(&codes::INVALID, "there is no first member to launch from");
            self.tell(note, node.get("replicas").unwrap_or(node));
        }
        let end = end_rule(node.at(&["completion"]), &runs);
        self.check_end_rule(node, end, replicas);
        self.check_container(node);
        let slots = number(node.at(&["slots"])).map_or(Slots::NONE, Slots::stated);
        for (key, field) in
            [("replicas", "replicas"), ("slots", "slots"), ("image", "image"), ("env", "env")]
        {
            self.remember(format!("{name}.{key}"), node.at(&[field]));
        }
        Some(Group {
            replicas,
            slots,
            runs,
            image: self.image(node),
            resources: resources(node),
            env: node.at(&["env"]).map(environment).unwrap_or_default(),
            working_dir: node.at(&["workingDir"]).and_then(text),
            code: self.code(node),
            ports: node.at(&["ports"]).map(ports).unwrap_or_default(),
            shm_mib: number(node.at(&["shmMiB"])),
            rdma: node.at(&["rdma"]).and_then(Node::boolean) == Some(true),
            end,
            restart: choice(node.at(&["restartPolicy"]), &words::RESTART)
                .unwrap_or(RestartPolicy::Never),
            extras: template::extras(node),
            name,
        })
    }

    fn runs(&mut self, node: &Node, name: &str) -> Option<Runs> {
        let command = self.command(node, name);
        let run = node.at(&["run"]).and_then(Node::text);
        match (run, command) {
            (None | Some("Ranks"), None) => Some(Runs::Ranks(None)),
            (Some("Ranks"), command) => Some(Runs::Ranks(command)),
            (Some("Launch"), Some(command)) => Some(Runs::Launch(command)),
            (Some("LaunchOnFirst"), Some(command)) => Some(Runs::LaunchOnFirst(command)),
            (Some(_), Some(command)) => Some(Runs::Own(command)),
            (None, Some(_)) => {
                let message = format!("group `{name}` has a command but does not say what for");
                let note = Note::new(&codes::MISSING, message).hint(
                    "add `run: Launch` (it starts the ranks), `run: LaunchOnFirst` (so it does, on the first of them), `run: Command` (every member runs it) or `run: Ranks` (it runs beside the ranks)",
                );
                self.tell(note, node);
                None
            }
            (Some(run), None) => {
                let message = format!("group `{name}` has `run: {run}` but no command");
                let note = Note::new(&codes::MISSING, message).hint(
                    "add `script` or `command`; `args: []` means the image's own entry point",
                );
                self.tell(note, node.get("run").unwrap_or(node));
                None
            }
        }
    }

    fn command(&mut self, node: &Node, name: &str) -> Option<Command> {
        let script = node.at(&["script"]);
        let command = node.at(&["command"]);
        let args = node.at(&["args"]);
        let place = script.or(command).or(args)?;
        self.remember(format!("{name}.command"), Some(place));
        if let (Some(script), Some(other)) = (script, command.or(args)) {
            let note = Note::new(&codes::INVALID, "`script` stands beside `command` or `args`")
                .hint("a script goes to a shell, a command does not: keep one of the two");
            self.tell(note, other);
            return Some(Command::bash(text(script)?));
        }
        if let Some(shell) = node.at(&["shell"]).filter(|_| script.is_none()) {
            let note = Note::new(&codes::INVALID, "`shell` needs a `script` to read")
                .hint("write the line as `script`, or remove `shell`");
            self.tell(note, shell);
        }
        let strings = |list: &Node| list.items().iter().filter_map(text).collect::<Vec<_>>();
        let arguments = args.map(strings).unwrap_or_default();
        match (script, command) {
            (Some(script), _) => {
                let shell = choice(node.at(&["shell"]), &words::SHELL).unwrap_or(Shell::Bash);
                Some(Command::Line { shell, text: text(script)? })
            }
            (None, Some(command)) => {
                Some(Command::Words(strings(command).into_iter().chain(arguments).collect()))
            }
            (None, None) => Some(Command::ImageEntry(arguments)),
        }
    }

    fn image(&mut self, node: &Node) -> Option<Image> {
        let image = node.at(&["image"]).and_then(text);
        let Some(environment) = node.at(&["azureEnvironment"]) else {
            return image.map(Image::Container);
        };
        if image.is_some() {
            let note = Note::new(&codes::INVALID, "`azureEnvironment` stands beside `image`")
                .hint("keep the one that the members are to run in");
            self.tell(note, environment);
        }
        text(environment).map(Image::AzureEnvironment)
    }

    fn code(&mut self, node: &Node) -> Option<CodeFolder> {
        let place = node.at(&["code"])?;
        let code = CodeFolder { path: text(place)? };
        let pieces = 1..=CodeFolder::MOST_PIECES;
        let is_wrong = match code.source() {
            CodeSource::Pieces { name, count } => name.is_empty() || !pieces.contains(&count),
            // A count that is no number.
            CodeSource::Path(path) => path.starts_with("configmaps:"),
            CodeSource::Volume { claim, .. } => claim.is_empty(),
        };
        if is_wrong {
            let message = format!("`{}` names no code", crate::clipped(&code.path));
            let note = Note::new(&codes::INVALID, message).hint(format!(
                "write `configmaps:NAME:COUNT` with a COUNT of 1 to {}, or `claim:NAME/FOLDER`",
                CodeFolder::MOST_PIECES
            ));
            self.tell(note, place);
        }
        Some(code)
    }

    /// The container that the group's own fields speak of has to be there.
    fn check_container(&mut self, node: &Node) {
        let Some(place) = node.at(&["templateContainer"]) else { return };
        let containers =
            node.at(&["template", "spec", "containers"]).map_or(0, |it| it.items().len());
        if number::<usize>(Some(place)).is_some_and(|index| index >= containers) {
            let message = format!("the template has {containers} containers, counted from 0");
            let note = Note::new(&codes::INVALID, message)
                .hint("give the number of the container that runs the group's command");
            self.tell(note, place);
        }
    }

    fn check_end_rule(&mut self, node: &Node, end: EndRule, replicas: u32) {
        for (key, count) in [("minFailed", end.min_failed), ("minSucceeded", end.min_succeeded)] {
            let Some(place) = node.at(&["completion", key]) else { continue };
            if count.is_some_and(|count| count > replicas) {
                let message = format!(
                    "`{key}` can never be reached: the group has {replicas} member{}",
                    if replicas == 1 { "" } else { "s" }
                );
                let note = Note::new(&codes::INVALID, message)
                    .hint(format!("write at most {replicas}, or leave `{key}` out"));
                self.tell(note, place);
            }
        }
    }
}

/// When the group ends the job, if the file does not say.
pub(super) const fn default_end(runs: &Runs) -> EndRule {
    match runs {
        Runs::Launch(_) | Runs::LaunchOnFirst(_) => EndRule::FIRST,
        Runs::Own(_) => EndRule { min_failed: Some(1), min_succeeded: None },
        Runs::Ranks(_) => EndRule::NEVER,
    }
}

fn end_rule(node: Option<&Node>, runs: &Runs) -> EndRule {
    node.map_or_else(
        || default_end(runs),
        |node| EndRule {
            min_failed: number(node.at(&["minFailed"])),
            min_succeeded: number(node.at(&["minSucceeded"])),
        },
    )
}

fn resources(node: &Node) -> Resources {
    let part = |name| quantities(node.at(&["resources", name]));
    Resources { limits: part("limits"), requests: part("requests") }
}

fn environment(node: &Node) -> Vec<EnvVar> {
    let variable = |node: &Node| {
        let name = node.at(&["name"]).and_then(text)?;
        Some(EnvVar { name, value: node.at(&["value"]).and_then(text) })
    };
    node.items().iter().filter_map(variable).collect()
}

fn ports(node: &Node) -> Vec<PortRequest> {
    let port = |node: &Node| {
        Some(PortRequest {
            label: node.at(&["name"]).and_then(text)?,
            begin_at: number(node.at(&["first"])),
            count: number(node.at(&["count"])).unwrap_or(1),
        })
    };
    node.items().iter().filter_map(port).collect()
}

pub(super) fn number<T: TryFrom<i128>>(node: Option<&Node>) -> Option<T> {
    node.and_then(Node::integer)
}
