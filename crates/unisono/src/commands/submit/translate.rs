//! A job of a system that a cluster does not know, as one that it does: names of that system are looked up in the settings.
//! A job and settings enter, a job whose images, namespace, queue and nodes are the cluster's leaves, or faults. Pure.

use serde_json::{Map, Value, json};
use unisono_dialect::{bare_template, compute_target};
use unisono_job::{
    Extras, Group, Image, Job, Note, System, is_dns_label, is_label_value, label_from,
};
use unisono_k8s::marks;
use unisono_plan::resolve_folders;

use super::codes::{NO_IMAGE, RDMA_UNMAPPED, UNMAPPED_ENVIRONMENT, UNMAPPED_PLACE};
use crate::settings::{ClusterMap, PlaceInCluster, Rdma};

/// The label by which jobs of an experiment are found.
pub(crate) const EXPERIMENT: &str = "unisono.dev/experiment";

/// A job for the cluster, with what there is to tell about it; none when a fault stands in its way.
pub(super) fn translate(job: &Job, map: &ClusterMap, user: &str) -> (Option<Job>, Vec<Note>) {
    let mut notes = Vec::new();
    let mut job = job.clone();
    label_experiment(&mut job);
    if job.dialect.system() == System::OpenPai {
        keep_names(&mut job, user);
    }
    place(&mut job, map, &mut notes);
    for at in 0..job.groups.len() {
        let place = job.groups.get(at).and_then(|it| job.origins.of(&format!("{}.image", it.name)));
        let place = place.cloned();
        let Some(group) = job.groups.get_mut(at) else { continue };
        if let Some(fault) = map_image(group, map) {
            let fault = fault.at(place);
            if !notes.contains(&fault) {
                notes.push(fault);
            }
        }
        // What it gets is named from here on, or told.
        if std::mem::take(&mut group.rdma) {
            match &map.rdma {
                Some(rdma) => give_rdma(group, &rdma.value),
                None => notes.push(no_rdma(&group.name)),
            }
        }
    }
    let faulty = notes.iter().any(Note::is_fault);
    ((!faulty).then_some(job), notes)
}

fn label_experiment(job: &mut Job) {
    if let Some(experiment) = &job.experiment {
        let label = match is_label_value(experiment) {
            true => experiment.clone(),
            false => label_from(experiment, unisono_job::MAX_LABEL),
        };
        job.labels.insert(EXPERIMENT.to_owned(), label);
    }
}

/// Keeps what OpenPAI's variables and folders say of who submitted the job, and to which virtual cluster. The operator knows
/// neither: it sees a queue of its own cluster, and nobody.
fn keep_names(job: &mut Job, user: &str) {
    resolve_folders(job, user);
    let cluster = job.policies.gang.queue.clone();
    let known = [(marks::USER, Some(user.to_owned())), (marks::VIRTUAL_CLUSTER, cluster)];
    for (name, value) in known {
        if let Some(value) = value {
            job.annotations.entry(name.to_owned()).or_insert(value);
        }
    }
}

/// Puts the job where its compute target or virtual cluster is.
fn place(job: &mut Job, map: &ClusterMap, notes: &mut Vec<Note>) {
    let (table, name, places) = match job.dialect.system() {
        System::AzureMl => ("compute", compute_target(job), &map.compute),
        System::OpenPai => {
            ("virtual_clusters", job.policies.gang.queue.clone(), &map.virtual_clusters)
        }
        System::Kubeflow | System::KubeBatch | System::Unisono => return,
    };
    let Some(name) = name else { return };
    match places.get(&name) {
        Some(place) => put(job, &place.value),
        // OpenPAI's usual virtual cluster is nobody's wish, and not everybody has queues.
        None if name == "default" || name == "local" => job.policies.gang.queue = None,
        None => {
            if job.dialect.system() == System::OpenPai {
                job.policies.gang.queue = None;
            }
            let message = format!("no setting says where `{name}` is in the cluster");
            let hint =
                format!("at the top of unisono.toml: {table}.{}.namespace = \"…\"", key(&name));
            notes.push(Note::new(&UNMAPPED_PLACE, message).hint(hint));
        }
    }
}

fn put(job: &mut Job, place: &PlaceInCluster) {
    if place.namespace.is_some() {
        job.namespace.clone_from(&place.namespace);
    }
    job.policies.gang.queue.clone_from(&place.queue);
    if place.priority_class.is_some() {
        job.policies.gang.priority_class.clone_from(&place.priority_class);
    }
    if place.node_selector.is_empty() {
        return;
    }
    for group in &mut job.groups {
        change_template(group, |template| {
            let selector = part(part(template, "spec"), "nodeSelector");
            for (label, value) in &place.node_selector {
                object(selector).insert(label.clone(), value.as_str().into());
            }
        });
    }
}

/// Gives the group an image of the cluster; what leaves is why not.
fn map_image(group: &mut Group, map: &ClusterMap) -> Option<Note> {
    match &group.image {
        Some(Image::Container(image)) => {
            if let Some(other) = map.images.get(image) {
                group.image = Some(Image::Container(other.value.clone()));
            }
            None
        }
        Some(Image::AzureEnvironment(name)) => match map.environment(name) {
            Some(image) => {
                group.image = Some(Image::Container(image.to_owned()));
                None
            }
            None => {
                let message = format!("no setting says which image `{name}` is");
                let hint = format!(
                    "add to unisono.toml, under [environments]: \"{name}\" = \"REGISTRY/IMAGE:TAG\""
                );
                Some(Note::new(&UNMAPPED_ENVIRONMENT, message).hint(hint))
            }
        },
        None if has_image(group) => None,
        None => Some(no_image(&group.name)),
    }
}

/// A fault for every group of a UnisonoJob that has no image at all; other objects need none of their own.
pub(super) fn without_image(job: &Job) -> Vec<Note> {
    let is_own = job.dialect.system() == System::Unisono;
    let without = job.groups.iter().filter(|it| is_own && it.image.is_none() && !has_image(it));
    without.map(|group| no_image(&group.name)).collect()
}

fn no_image(group: &str) -> Note {
    let message = format!("group `{group}` names no image, and a cluster needs one");
    Note::new(&NO_IMAGE, message).hint("name it in the file: `image: REGISTRY/IMAGE:TAG`")
}

fn has_image(group: &Group) -> bool {
    let pointer = format!("/spec/containers/{}/image", container_index(group));
    bare_template(group).pointer(&pointer).is_some_and(Value::is_string)
}

fn no_rdma(group: &str) -> Note {
    let message = format!("`{group}` asks for RDMA, and no setting says how it gets it");
    let example = "at the top of unisono.toml: rdma = { resources = { \"rdma/hca\" = \"1\" }, lock_memory = true }";
    Note::new(&RDMA_UNMAPPED, message).hint(example)
}

fn give_rdma(group: &mut Group, rdma: &Rdma) {
    let devices = rdma.resources.iter().map(|(name, amount)| (name.clone(), amount.0.clone()));
    group.resources.limits.extend(devices);
    let main = format!("/spec/containers/{}", container_index(group));
    change_template(group, |template| {
        for (at, path) in rdma.mounts.iter().enumerate() {
            let volume = json!({"name": format!("rdma-{at}"), "hostPath": {"path": path}});
            push(part(part(template, "spec"), "volumes"), volume);
        }
        let Some(container) = template.pointer_mut(&main) else { return };
        if rdma.lock_memory {
            let security = part(container, "securityContext");
            *part(security, "capabilities") = json!({"add": ["IPC_LOCK"]});
        }
        for (at, path) in rdma.mounts.iter().enumerate() {
            let mount = json!({"name": format!("rdma-{at}"), "mountPath": path, "readOnly": true});
            push(part(container, "volumeMounts"), mount);
        }
    });
}

/// Changes the pod template of a group, which gets one if it has none. What the group itself says stays with the group.
fn change_template(group: &mut Group, change: impl FnOnce(&mut Value)) {
    let mut template = bare_template(group);
    change(&mut template);
    let extras = group.extras.get_or_insert_with(Extras::default);
    extras.template = template.to_string();
}

fn container_index(group: &Group) -> usize {
    group.extras.as_ref().map_or(0, |extras| extras.container)
}

/// The object that a value is; made one when it is none.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(object) => object,
        _ => unreachable!("it was just made one"),
    }
}

/// What stands under a key; what it stands in is made an object when it is none.
fn part<'object>(parent: &'object mut Value, key: &str) -> &'object mut Value {
    object(parent).entry(key).or_insert(Value::Null)
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

/// A name as TOML has it between dots.
fn key(name: &str) -> String {
    if is_dns_label(name) { name.to_owned() } else { toml::Value::from(name).to_string() }
}

#[cfg(test)]
mod tests {
    use unisono_dialect::{Options, pod_template, read, write};
    use unisono_job::Dialect;

    use super::*;

    const AZURE: &str = "\
name: ring
type: MpiJob
experiment_name: Ring Tests
launcher: {spec: {command: mpirun -np 2 ./a, environment: azureml:mpi:3}}
worker: {spec: {environment: azureml:mpi:3}}
compute: {type: AmlCompute, target: d8-pool, instance_count: 2}
";

    fn map(text: &str) -> ClusterMap {
        ClusterMap::parse(text).unwrap()
    }

    fn job(text: &str) -> Job {
        let options = Options { az_rdma: true, ..Options::default() };
        read(text.as_bytes(), &options).remove(0).job.unwrap()
    }

    #[test]
    fn an_environment_without_an_image_is_a_fault_with_the_line_to_add() {
        let (translated, notes) = translate(&job(AZURE), &ClusterMap::default(), "ada");
        assert_eq!(translated, None);
        let [fault] = notes.iter().filter(|it| it.is_fault()).collect::<Vec<_>>()[..] else {
            panic!("{notes:?}")
        };
        let hint = fault.hint.as_deref().unwrap();
        assert!(hint.contains("\"azureml:mpi:3\" = \"REGISTRY/IMAGE:TAG\""), "{hint}");
        assert!(fault.place.is_some(), "the fault is shown where it stands");
    }

    #[test]
    fn an_azure_job_gets_its_image_namespace_queue_nodes_and_label() {
        let map = map("\
[environments]
\"azureml:mpi\" = \"lab/mpi:3\"
[compute.d8-pool]
namespace = \"ml\"
queue = \"batch\"
node_selector = { pool = \"d8\" }
");
        let (translated, notes) = translate(&job(AZURE), &map, "ada");
        let translated = translated.unwrap();
        assert_eq!(notes, []);
        assert_eq!(translated.namespace.as_deref(), Some("ml"));
        assert_eq!(translated.policies.gang.queue.as_deref(), Some("batch"));
        let label = &translated.labels[EXPERIMENT];
        assert!(label.starts_with("ring-tests-"), "{label}");
        let template = pod_template(&translated.groups[0]);
        assert_eq!(template["spec"]["nodeSelector"]["pool"], "d8");
        assert_eq!(template["spec"]["containers"][0]["image"], "lab/mpi:3");
    }

    #[test]
    fn an_openpai_job_gets_rdma_and_another_image() {
        let text = r#"{"jobName": "r", "image": "lab/impi", "virtualCluster": "vc1", "jobEnvs": {"paiAzRDMA": true},
            "taskRoles": [{"name": "w", "taskNumber": 1, "command": "x"}]}"#;
        let map = map("\
[images]
\"lab/impi\" = \"registry.lab/impi:2\"
[virtual_clusters.vc1]
namespace = \"vc1\"
[rdma]
resources = { \"rdma/hca\" = \"1\" }
mounts = [\"/etc/dat.conf\"]
lock_memory = true
");
        let (translated, notes) = translate(&job(text), &map, "ada");
        let translated = translated.unwrap();
        assert_eq!(notes, []);
        assert_eq!(translated.namespace.as_deref(), Some("vc1"));
        assert_eq!(translated.policies.gang.queue, None);
        let container = &pod_template(&translated.groups[0])["spec"]["containers"][0];
        assert_eq!(container["image"], "registry.lab/impi:2");
        assert_eq!(container["resources"]["limits"]["rdma/hca"], "1");
        assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/dat.conf");
        assert_eq!(container["securityContext"]["capabilities"]["add"][0], "IPC_LOCK");
        assert_eq!(container["command"][2], "x");
    }

    /// An object that is written for OpenPAI, whose one group has that template.
    fn with_template(template: &str) -> Job {
        job(&format!(
            "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: r}}\nspec:\n  writtenFor: openpai/v1\n  \
             policies: {{gang: {{queue: vc1}}}}\n  groups: [{{name: w, run: Command, image: i, code: ./src, command: [x], \
             rdma: true, template: {template}}}]\n"
        ))
    }

    #[test]
    fn a_template_without_a_container_gets_nodes_and_devices_all_the_same() {
        let map = map("\
[virtual_clusters.vc1]
node_selector = { pool = \"d8\" }
[rdma]
resources = { \"rdma/hca\" = \"1\" }
mounts = [\"/etc/dat.conf\"]
lock_memory = true
");
        for template in [
            "{}",
            "{spec: {tolerations: []}}",
            "{spec: 5}",
            "{spec: {nodeSelector: x, volumes: 7}}",
        ] {
            let job = translate(&with_template(template), &map, "ada").0.unwrap();
            let spec = &pod_template(&job.groups[0])["spec"];
            assert_eq!(spec["nodeSelector"]["pool"], "d8", "{template}");
            assert_eq!(spec["volumes"][0]["hostPath"]["path"], "/etc/dat.conf", "{template}");
            let container = &spec["containers"][0];
            assert_eq!((&container["image"], &container["name"]), (&json!("i"), &json!("w")));
            assert_eq!(container["resources"]["limits"]["rdma/hca"], "1", "{template}");
            assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/dat.conf", "{template}");
            assert_eq!(container["securityContext"]["capabilities"]["add"][0], "IPC_LOCK");
        }
        let second = "{spec: {containers: [{name: side, image: s}, {name: main, image: m}]}}";
        let text = second.to_owned() + ", templateContainer: 1";
        let job = translate(&with_template(&text), &map, "ada").0.unwrap();
        let containers = &pod_template(&job.groups[0])["spec"]["containers"];
        assert_eq!(containers[0]["volumeMounts"], Value::Null);
        assert_eq!(containers[1]["volumeMounts"][0]["mountPath"], "/etc/dat.conf");
    }

    #[test]
    fn a_template_without_a_container_brings_no_image() {
        let mut job = with_template("{spec: {tolerations: []}}");
        job.groups[0].image = None;
        let (translated, notes) = translate(&job, &ClusterMap::default(), "ada");
        assert_eq!(translated, None);
        assert!(notes.iter().any(|it| *it.code == NO_IMAGE), "{notes:?}");
    }

    #[test]
    fn an_experiment_that_can_be_a_label_stays_as_it_is() {
        for (experiment, is_kept) in [("Ring_Tests", true), ("a.b-C", true), ("_x", false)] {
            let text = AZURE.replace("Ring Tests", experiment);
            let mut job = job(&text);
            label_experiment(&mut job);
            assert_eq!(job.labels[EXPERIMENT] == experiment, is_kept, "{experiment}");
        }
    }

    #[test]
    fn an_openpai_job_keeps_who_submitted_it_where_and_its_folders() {
        let text = r#"{"jobName": "r", "image": "i", "virtualCluster": "vc1", "codeDir": "/home/$PAI_USER_NAME/src",
            "taskRoles": [{"name": "w", "taskNumber": 1, "command": "x"}]}"#;
        let map = map("virtual_clusters.vc1.queue = \"gold\"\n");
        let job = translate(&job(text), &map, "ada").0.unwrap();
        assert_eq!(job.policies.gang.queue.as_deref(), Some("gold"));
        assert_eq!(job.annotations[marks::USER], "ada");
        assert_eq!(job.annotations[marks::VIRTUAL_CLUSTER], "vc1");
        assert_eq!(job.groups[0].code.as_ref().unwrap().path, "/home/ada/src");
    }

    #[test]
    fn a_switch_in_quotes_asks_for_no_devices() {
        for (value, asks) in [("true", true), ("\"true\"", false), ("false", false)] {
            let text = format!(
                r#"{{"jobName": "r", "image": "i", "jobEnvs": {{"paiAzRDMA": {value}}},
                "taskRoles": [{{"name": "w", "taskNumber": 1, "command": "x"}}]}}"#
            );
            let options = Options { az_rdma: true, ..Options::default() };
            let reading = read(text.as_bytes(), &options).remove(0);
            let map = map("rdma.resources = { \"rdma/hca\" = \"1\" }\n");
            let read_here = reading.job.unwrap();
            // The same, by way of a file of another dialect.
            let converted = write(&read_here, Dialect::Unisono).unwrap();
            for asked in [read_here, job(&converted.text)] {
                let job = translate(&asked, &map, "ada").0.unwrap();
                let limits = &job.groups[0].resources.limits;
                assert_eq!(limits.contains_key("rdma/hca"), asks, "{value}: {}", converted.text);
                assert!(job.groups[0].env.iter().any(|it| it.name == "paiAzRDMA"));
                assert!(!job.groups[0].rdma, "it was asked for once");
            }
        }
    }

    #[test]
    fn lines_to_add_are_toml() {
        let text = r#"{"jobName": "r", "image": "i", "virtualCluster": "a \"b\"", "jobEnvs": {"paiAzRDMA": true},
            "taskRoles": [{"name": "w", "taskNumber": 1, "command": "x"}]}"#;
        let (_, notes) = translate(&job(text), &ClusterMap::default(), "ada");
        let hints: Vec<&str> = notes.iter().filter_map(|it| it.hint.as_deref()).collect();
        assert_eq!(hints.len(), 2, "{notes:?}");
        for hint in hints {
            let line = hint.strip_prefix("at the top of unisono.toml: ").unwrap();
            let map = map(line);
            assert!(map.rdma.is_some() || map.virtual_clusters.contains_key("a \"b\""), "{line}");
        }
    }
}
