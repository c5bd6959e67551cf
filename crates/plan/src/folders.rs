//! OpenPAI's folders: the submitter's name, which no file has, is put into them, as that platform's server did.

use unisono_job::{Job, System};

/// The variables that tell a task its folders.
pub(crate) const VARIABLES: [&str; 3] = ["PAI_DATA_DIR", "PAI_OUTPUT_DIR", "PAI_CODE_DIR"];

/// Puts the submitter's name into every folder of an OpenPAI job.
pub fn resolve(job: &mut Job, user: &str) {
    if job.dialect.system() != System::OpenPai {
        return;
    }
    let resolved = |path: &str| path.replace("$PAI_USER_NAME", user).replace("$PAI_USERNAME", user);
    for group in &mut job.groups {
        if let Some(code) = &mut group.code {
            code.path = resolved(&code.path);
        }
        let folders = group.env.iter_mut().filter(|it| VARIABLES.contains(&it.name.as_str()));
        for value in folders.filter_map(|variable| variable.value.as_mut()) {
            *value = resolved(value);
        }
    }
}
