//! A job's code in its pods: pieces of an archive that the agent unpacks, or a volume that has it. It becomes the directory
//! that commands start in.

use serde_json::{Value, json};
use unisono_job::{CodeFolder, CodeSource};
use unisono_plan::Host;

use super::Rendering;
use super::template::Template;
use crate::marks::{CODE_PIECES, HOME};

/// The volume of the code, or of its pieces.
const CODE: &str = "unisono-code";

impl Rendering<'_> {
    /// Gives a host its code. What leaves are the words and mounts that the agent's installation needs for it.
    pub(super) fn code(&self, template: &mut Template, host: &Host) -> (Vec<String>, Vec<Value>) {
        let nothing = (Vec::new(), Vec::new());
        let Some(code) = &self.plan.group_of(host).code else { return nothing };
        let folder = format!("{HOME}/code");
        let for_agent = match code.source() {
            // Nobody's machine is known here; the plan tells so.
            CodeSource::Path(_) => return nothing,
            CodeSource::Pieces { name, count } => {
                let piece = |at| {
                    let items = json!([{"key": "piece", "path": format!("{at:04}")}]);
                    json!({"configMap": {"name": format!("{name}-{at}"), "items": items}})
                };
                // Whoever read the job has refused more; no number that somebody wrote is a reason to run out of memory.
                let count = count.min(CodeFolder::MOST_PIECES);
                let sources: Vec<Value> = (0..count).map(piece).collect();
                template.add_volume(json!({"name": CODE, "projected": {"sources": sources}}));
                let mount = json!({"name": CODE, "mountPath": CODE_PIECES, "readOnly": true});
                (vec!["--code".to_owned(), CODE_PIECES.to_owned()], vec![mount])
            }
            CodeSource::Volume { claim, folder: inside } => {
                let volume = json!({"claimName": claim});
                template.add_volume(json!({"name": CODE, "persistentVolumeClaim": volume}));
                template.mount(match inside {
                    "" => json!({"name": CODE, "mountPath": folder}),
                    inside => json!({"name": CODE, "mountPath": folder, "subPath": inside}),
                });
                nothing
            }
        };
        template.container().entry("workingDir").or_insert(json!(folder));
        for_agent
    }
}
